package subnets

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/doctor"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/doctor/report"
	"cnictl/tui/show"
)

// sign is how the map shows the use of a /28: as a letter, so that screen readers can read
// it.
type sign struct {
	use, letter, word string
	class             paint.Class
}

var signs = []sign{
	{document.BlockFree, ".", "free: can become a prefix", paint.OK},
	{document.BlockUnknown, "-", "unknown: free, or in use by others", paint.Dim},
	{document.BlockPrefix, "P", "a prefix of a node", paint.Assigned},
	{document.BlockFragmented, "1-f", "fragmented by single IPs of nodes, that many of 16 (* is 16): cannot become a prefix", paint.Warn},
	{document.BlockPrimary, "o", "a node's own address", paint.Plain},
	{document.BlockOthers, "u", "used by others", paint.Plain},
	{document.BlockReserved, "R", "has addresses that AWS reserves", paint.Dim},
}

// letter is the sign of one /28: of a fragmented one, how many addresses nodes hold.
func (s sign) letterOf(b document.SubnetBlock) string {
	switch {
	case s.use != document.BlockFragmented:
		return s.letter
	case b.Held >= 16:
		return "*"
	}
	return strconv.FormatInt(int64(max(0, b.Held)), 16)
}

// Blocks in a row of the map: 1,024 addresses, or as many as fit a narrow terminal.
const (
	mapMost  = 64
	mapLeast = 16
	mapGroup = 16
)

// mapLines shows one subnet: its numbers, and the map with a legend.
func mapLines(f *cli.Factory, doc document.SubnetMap, r row) []string {
	p := output.Page{Opts: output.TableOptions(f)}
	p.Field("subnet", doc.ID)
	p.Field("zone", show.OrUnknown(doc.Zone))
	p.Field("range", show.OrUnknown(doc.CIDR))
	p.Field("free", free(doc, r.Now))
	p.Field("held", show.Count(doc.Held)+" by "+human.Plural(doc.Nodes, "node", "nodes")+" with "+
		human.Plural(doc.ENIs, "interface", "interfaces")+" here; held free "+show.Count(doc.Wasted))
	p.Field("others", others(doc))
	blocks := notKnown
	if doc.FreeBlocks != nil {
		blocks = "at most " + show.Int(doc.FreeBlocks) + " free, " + show.Int(doc.FragmentedBlocks) + " fragmented by single IPs"
		if doc.Interfaces {
			blocks = strings.TrimPrefix(blocks, "at most ")
		}
	}
	p.Field("/28s", blocks)
	left := r.Trend.Words()
	if at, ok := r.Trend.Emptied(); ok { // its rate over days says nothing any more
		left = "none left for " + human.Age(r.Now.Sub(at))
	}
	p.Field("left", cmp.Or(left, "unknown: takes two of EC2's counts, from the daemons, --watch or --replay of a recording"))
	if len(doc.Blocks) == 0 {
		why := "its IPv4 range is unknown: the upstream daemon does not report it"
		if doc.CIDR != "" {
			why = doc.CIDR + " is not the IPv4 CIDR of a VPC subnet (/16 to /28)"
		}
		p.Field("map", "none: "+why)
		return p.Lines
	}
	p.Title("MAP OF /28S")
	p.Lines = append(p.Lines, grid(doc.Blocks, p.Opts)...)
	p.Lines = append(p.Lines, "")
	p.Lines = append(p.Lines, legend(doc.Blocks, p.Opts.Palette)...)
	most := mostShown
	if output.Wide(f) {
		most = len(doc.Blocks)
	}
	p.Section("FRAGMENTED /28S, FEWEST NODES FIRST"+ofMost(len(fragmented(doc)), most), fragmentedTable(doc, most))
	p.Section("USED BY OTHERS"+ofMost(len(doc.Owners), most), ownerTable(doc.Owners, most))
	if doc.Freeing != nil {
		freeingLines(&p, f, doc)
	}
	return p.Lines
}

// mostShown is how many rows of a table are shown without -o wide.
const mostShown = 10

func ofMost(n, most int) string {
	if n <= most {
		return ""
	}
	return fmt.Sprintf(" (%d of %d; -o wide shows all)", most, n)
}

// others says how many addresses others have, and where.
func others(doc document.SubnetMap) string {
	out := known(doc.Others)
	if doc.Interfaces {
		n := 0
		for _, o := range doc.Owners {
			n += o.Addresses
		}
		return show.Count(n) + ", by EC2's interfaces"
	}
	if doc.Unplaced != nil && *doc.Unplaced > 0 && len(doc.Blocks) > 0 {
		out += "; " + show.Count(*doc.Unplaced) +
			" addresses of them and of ENIs themselves are anywhere in the range: --aws finds them"
	}
	return out
}

// fragmented returns the fragmented /28s, those of the fewest nodes first.
func fragmented(doc document.SubnetMap) []document.SubnetBlock {
	whole := func(b document.SubnetBlock) bool { return b.Use != document.BlockFragmented }
	out := slices.DeleteFunc(slices.Clone(doc.Blocks), whole)
	slices.SortStableFunc(out, func(a, b document.SubnetBlock) int {
		return cmp.Or(cmp.Compare(len(a.Holders)+len(a.Owners), len(b.Holders)+len(b.Owners)), cmp.Compare(a.Held, b.Held))
	})
	return out
}

func fragmentedTable(doc document.SubnetMap, most int) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "PREFIX"}, {Name: "HELD", Right: true}, {Name: "USED", Right: true}, {Name: "NODES", Right: true}, {Name: "BY", Free: true},
	}}
	all := fragmented(doc)
	for _, b := range all[:min(most, len(all))] {
		var by []string
		for _, h := range b.Holders {
			by = append(by, fmt.Sprintf("%s %d", h.Node, h.Held))
		}
		for _, o := range b.Owners {
			by = append(by, fmt.Sprintf("%s %d", o.Name, o.Addresses))
		}
		t.Rows = append(t.Rows, table.Cells(b.Prefix.String(),
			strconv.Itoa(b.Held), strconv.Itoa(b.Used), strconv.Itoa(len(b.Holders)), strings.Join(by, ", ")))
	}
	return t
}

func ownerTable(all []document.SubnetOwner, most int) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "OWNER", Free: true}, {Name: "INTERFACES", Right: true}, {Name: "ADDRESSES", Right: true}, {Name: "/28S", Right: true},
	}}
	for _, o := range all[:min(most, len(all))] {
		t.Rows = append(t.Rows, table.Cells(o.Name,
			strconv.Itoa(o.Interfaces), strconv.Itoa(o.Addresses), strconv.Itoa(o.Blocks)))
	}
	return t
}

// freeingLines says which nodes to terminate, what that does, and how.
func freeingLines(p *output.Page, f *cli.Factory, doc document.SubnetMap) {
	free := doc.Freeing
	nodes := human.Plural(len(free.Nodes), "node", "nodes")
	title := fmt.Sprintf("FREE %s BY TERMINATING %s", human.Plural(free.Wanted, "/28", "/28S"), strings.ToUpper(nodes))
	p.Lines = append(p.Lines, "", p.Opts.Palette.Paint(paint.Head, title))
	sure := "no smaller set of nodes does it"
	if !free.Exact {
		sure = fmt.Sprintf("the best set found in %s: at least %s needed, so it may be %d too many",
			freeingTime, human.Plural(free.Least, "node is", "nodes are"), len(free.Nodes)-free.Least)
	}
	p.Field("set", nodes+"; "+sure)
	p.Field("frees", human.Plural(len(free.Blocks), "/28", "/28s")+" and "+
		human.Plural(free.Addresses, "address", "addresses")+" of the subnet, with the ENIs' own")
	p.Field("moves", human.Plural(free.Pods, "pod", "pods")+"; the other nodes hold "+
		human.Plural(free.Warm, "free address", "free addresses")+" for them"+moreOf(free.NewAddresses))
	if !doc.Interfaces {
		p.Field("unknown", "an address of others, or of another node's ENI itself, may be in one of these /28s: check with --aws")
	}
	p.Lines = append(p.Lines, "")
	t := table.Table{Columns: []table.Column{
		{Name: "NODE"}, {Name: "INSTANCE"}, {Name: "GROUP"}, {Name: "PODS", Right: true}, {Name: "ADDRESSES", Right: true},
	}}
	for _, n := range free.Nodes {
		t.Rows = append(t.Rows, table.Cells(n.Node, show.OrUnknown(n.InstanceID),
			show.OrUnknown(n.Group), strconv.Itoa(n.Pods), strconv.Itoa(n.Addresses)))
	}
	p.Lines = append(p.Lines, t.Lines(p.Opts)...)
	p.Lines = append(p.Lines, "")
	for i, s := range free.Steps {
		doctor.Step(p, f, strconv.Itoa(i+1), report.StepOf(s.CauseFix))
	}
	p.Lines = append(p.Lines, "",
		p.Opts.Palette.Paint(paint.Dim, "Nothing was changed. Do it node by node: the next step may wait until pods run again."))
}

// moreOf says what pods take that find no free address.
func moreOf(n int) string {
	if n == 0 {
		return ""
	}
	return ", so they take " + human.Plural(n, "new one", "new ones") +
		", each of which may break up another /28 (in prefix mode, a new /28 for 16)"
}

// notKnown replaces a missing number in a sentence.
const notKnown = "unknown"

func known(n *int) string {
	if n == nil {
		return notKnown
	}
	return show.Count(*n)
}

// free describes how many addresses are free, out of how many and as of when, as far as
// known.
func free(doc document.SubnetMap, now time.Time) string {
	if doc.Available == nil {
		return notKnown + ": no daemon that answered reports EC2's count (upstream does not)"
	}
	out := show.Int(doc.Available)
	if doc.Usable != nil {
		out += " of " + show.Int(doc.Usable)
	}
	if age := show.Since(doc.AsOf, now); age != show.Unknown {
		out += ", by EC2's count " + age + " ago"
	}
	return out
}

// grid draws the blocks in rows, each starting with its first address.
func grid(blocks []document.SubnetBlock, opts table.Options) []string {
	const label = len("255.255.255.255") + 2
	perRow := mapMost
	for opts.Width > 0 && perRow > mapLeast && label+perRow+perRow/mapGroup > opts.Width {
		perRow /= 2
	}
	var lines []string
	for start := 0; start < len(blocks); start += perRow {
		var b strings.Builder
		fmt.Fprintf(&b, "%-*s", label, blocks[start].Prefix.Addr())
		for i, block := range blocks[start:min(start+perRow, len(blocks))] {
			if i > 0 && i%mapGroup == 0 {
				b.WriteByte(' ')
			}
			s := signOf(block.Use)
			b.WriteString(opts.Palette.Paint(s.class, s.letterOf(block)))
		}
		lines = append(lines, b.String())
	}
	return lines
}

func signOf(use string) sign {
	for _, s := range signs {
		if s.use == use {
			return s
		}
	}
	return signs[1] // unknown
}

// legend explains and counts each sign.
func legend(blocks []document.SubnetBlock, palette paint.Palette) []string {
	counts := map[string]int{}
	for _, b := range blocks {
		counts[b.Use]++
	}
	var lines []string
	for _, s := range signs {
		if n := counts[s.use]; n > 0 {
			lines = append(lines, fmt.Sprintf("%s%*s %5d  %s", palette.Paint(s.class, s.letter), len("1-f")-len(s.letter), "", n, s.word))
		}
	}
	return lines
}

// blockTable lists the /28s for -o csv.
func blockTable(blocks []document.SubnetBlock) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "PREFIX"}, {Name: "USE"}, {Name: "HELD", Right: true}, {Name: "USED", Right: true}, {Name: "NODE"},
		{Name: "NODES", Right: true}, {Name: "OTHERS", Right: true},
	}}
	for _, b := range blocks {
		t.Rows = append(t.Rows, table.Cells(b.Prefix.String(), b.Use, strconv.Itoa(b.Held), strconv.Itoa(b.Used), show.OrUnknown(b.Node),
			strconv.Itoa(len(b.Holders)), show.Int(b.Others)))
	}
	return t
}
