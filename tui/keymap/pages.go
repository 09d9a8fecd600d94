package keymap

// Actions of the keys of single pages. Settings prefix them with the page: "node.subnets".
const (
	GroupBy   = "group-by"
	Zoom      = "zoom"
	Subnets   = "subnets"
	Trunks    = "trunks"
	ToENI     = "eni"
	ToNode    = "node"
	AllNodes  = "all-nodes"
	MaxPods   = "max-pods"
	NextBlock = "next-block"
	PrevBlock = "previous-block"
	Hold      = "hold"
	Wrap      = "wrap"
	Level     = "level"
	AllLines  = "all-lines"
	CopyText  = "copy-text"

	Evidence    = "evidence"
	NextCommand = "next-command"
	CopyCommand = "copy-command"

	Access  = "access-lines"
	Repeats = "repeats"

	More     = "more"
	Less     = "less"
	TenMore  = "ten-more"
	TenLess  = "ten-less"
	Reset    = "reset"
	ResetAll = "reset-all"
)

// PageKeys are the keys of one page. They take precedence over the app's keys, except the
// reserved ones.
type PageKeys struct {
	Page     string // its name, as in the settings
	Bindings []Binding
}

// PageTable returns the default keys of all pages that have any.
func PageTable() []PageKeys {
	zoom := func() Binding { return Of(Zoom, "z", "zoom pane", "z") }
	return []PageKeys{
		{"overview", []Binding{Of(GroupBy, "b", "group by", "b")}},
		{"subnets", []Binding{
			zoom(),
			Of(PrevBlock, ",", "previous block (map)", ","),
			Of(NextBlock, ".", "next block (map)", "."),
		}},
		{"trunks", []Binding{zoom()}},
		{"doctor", []Binding{zoom(), Of(Evidence, "e", "evidence", "e"), Of(AllNodes, "a", "toggle all nodes", "a")}},
		{"finding", []Binding{
			Of(Evidence, "e", "evidence", "e"),
			Of(NextCommand, "tab", "next command", "tab"),
			Of(CopyCommand, "i c", "copy the command", "i", "c"),
			Of(ToNode, "d", "go to node", "d"),
		}},
		{"logs", []Binding{
			Of(Hold, "space", "pause, resume", "space"),
			Of(Wrap, "w", "wrap", "w"),
			Of(Level, "v", "min level", "v"),
			Of(AllLines, "a", "all lines", "a"),
			Of(Access, "A", "access lines", "A"),
			Of(Repeats, "u", "each line, groups", "u"),
			Of(ToNode, "d", "go to node", "d"),
		}},
		{"node", []Binding{zoom(), Of(MaxPods, "M", "max-pods", "M"), Of(Subnets, "S", "subnets", "S"), Of(Trunks, "T", "trunks", "T")}},
		{"eni", []Binding{zoom(), Of(Subnets, "S", "go to subnet", "S")}},
		{"pods", []Binding{Of(ToENI, "e", "go to ENI", "e"), Of(ToNode, "d", "go to node", "d")}},
		{"enis", []Binding{Of(ToNode, "d", "go to node", "d"), Of(Subnets, "S", "go to subnet", "S")}},
		{"pod", []Binding{zoom(), Of(ToENI, "e", "go to ENI", "e"), Of(ToNode, "d", "go to node", "d")}},
		{"whatif", []Binding{
			Of(Less, "← -", "less", "left", "-", "h"),
			Of(More, "→ +", "more", "right", "+", "l"),
			Of(TenLess, "⇧←", "10 less", "shift+left"),
			Of(TenMore, "⇧→", "10 more", "shift+right"),
			Of(Reset, "bksp", "reset", "backspace"),
			Of(ResetAll, "r", "reset all", "r"),
			Of(CopyCommand, "i c", "copy the command", "i", "c"),
			zoom(),
		}},
		{"object", []Binding{Of(Wrap, "w", "wrap long lines", "w"), Of(CopyText, "i c", "copy the text", "i", "c")}},
	}
}

// Page returns the default keys of a page, nil if it has none.
func Page(name string) []Binding {
	for _, p := range PageTable() {
		if p.Page == name {
			return p.Bindings
		}
	}
	return nil
}
