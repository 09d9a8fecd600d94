package keymap

// Section is a group of keys with a heading.
type Section struct {
	Title    string
	Bindings []Binding
}

// Recording is the section of keys that only a recording has.
const Recording = "Recording"

// Table returns every key of the app, by purpose. Help, docs and key matching are built
// from it and from [PageTable].
func Table() []Section {
	return []Section{
		{"Move", []Binding{
			Of(Up, "↑ k", "up", "up", "k"),
			Of(Down, "↓ j", "down", "down", "j"),
			Of(PageUp, "pgup ^b", "page up", "pgup", "ctrl+b"),
			Of(PageDown, "pgdn ^f", "page down", "pgdown", "ctrl+f"),
			Of(HalfUp, "^u", "half page up", "ctrl+u"),
			Of(HalfDown, "^d", "half page down", "ctrl+d"),
			Of(First, "home g", "first", "home", "g"),
			Of(Last, "end G", "last", "end", "G"),
		}},
		{"Go", []Binding{
			Of(In, "enter l →", "open", "enter", "l", "right", "d"), // d: describe, in k9s; on some screens, to the node
			Of(Out, "esc h ←", "back", "esc", "h", "left", "backspace"),
			Of(Older, "[", "older screen", "["),
			Of(Newer, "]", "newer screen", "]"),
			Of(LastPage, "-", "last screen", "-"),
			Of(Screen1, "1…9", "screens", "1", "2", "3", "4", "5", "6", "7", "8", "9"),
			Of(NextPane, "tab", "next pane", "tab"),
			Of(PrevPane, "⇧tab", "previous pane", "shift+tab"),
			Of(Palette, ": ^a", "go to, commands", ":", "ctrl+a"),
		}},
		{"Find and sort", []Binding{
			Of(Filter, "/", "filter", "/"),
			Of(NextMatch, "n", "next match", "n"),
			Of(PrevMatch, "N", "previous match", "N"),
			Of(Clear, "^l", "default order", "ctrl+l"),
			Of(Sort, "s", "sort menu", "s"),
			Of(SortLeft, "⇧←", "sort left", "shift+left"),
			Of(SortRight, "⇧→", "sort right", "shift+right"),
			Of(Reverse, "o", "reverse", "o"),
		}},
		{"View", []Binding{
			Of(Mark, "space", "mark", "space"),
			Of(Range, "^space", "mark range", "ctrl+space", "ctrl+@"),
			Of(Faults, "f", "faults only", "f"),
			Of(Wide, "w ^w", "wide", "w", "ctrl+w"),
			Of(Pause, "p", "pause", "p"),
			Of(Refresh, "r ^r", "refresh", "r", "ctrl+r"),
			Of(Slower, "+", "slower refresh", "+"),
			Of(Faster, "_", "faster refresh", "_"),
		}},
		{"Act", []Binding{
			Of(Doctor, "D", "doctor", "D"),
			Of(Logs, "L", "logs", "L"),
			Of(WhatIf, "W", "what if", "W"),
			Of(Object, "y", "YAML, JSON", "y"),
			Of(Copy, "i c", "copy the name", "i", "c"),
			Of(Export, "x ^s", "export", "x", "ctrl+s"),
		}},
		{"App", []Binding{
			Of(Theme, "t", "theme", "t"),
			Of(Mouse, "m", "mouse", "m"),
			Of(Help, "?", "help", "?"),
			Of(Diagnose, "^g", "diagnostics", "ctrl+g"),
			Of(Back, "q", "back, quit", "q"),
			Of(Suspend, "^z", "suspend", "ctrl+z"),
			Of(Quit, "^c", "quit", "ctrl+c"),
		}},
		{Recording, []Binding{
			Of(MinuteBack, "{", "1 min back", "{"),
			Of(MinuteAhead, "}", "1 min forward", "}"),
			Of(TenBack, "(", "10 min back", "("),
			Of(TenAhead, ")", "10 min forward", ")"),
			Of(PlaySlower, "<", "play slower", "<"),
			Of(PlayFaster, ">", "play faster", ">"),
		}},
	}
}

// appRow are the actions whose keys no page may take.
var appRow = []string{Theme, Mouse, Help, Diagnose, Back, Quit, Suspend, Palette}
