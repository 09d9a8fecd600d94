package subnets

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/show"
)

// sign is how the map shows the use of a /28: as a letter, so that screen readers can read
// it.
type sign struct {
	use, letter, word string
	class             paint.Class
}

var signs = []sign{
	{document.BlockUnknown, "-", "unknown: free, or in use by others", paint.Dim},
	{document.BlockPrefix, "P", "a prefix of a node", paint.Assigned},
	{document.BlockFragmented, "x", "fragmented by single IPs of nodes: cannot become a prefix", paint.Warn},
	{document.BlockPrimary, "o", "a node's own address", paint.Plain},
	{document.BlockReserved, "R", "has addresses that AWS reserves", paint.Dim},
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
	p.Field("subnet", show.Safe(doc.ID))
	p.Field("zone", show.OrUnknown(show.Safe(doc.Zone)))
	p.Field("range", show.OrUnknown(show.Safe(doc.CIDR)))
	p.Field("free", free(doc, r.Now))
	p.Field("held", show.Count(doc.Held)+" by "+show.Plural(doc.Nodes, "node", "nodes")+" with "+show.Plural(doc.ENIs, "interface", "interfaces")+" here; wasted "+show.Count(doc.Wasted))
	p.Field("others", known(doc.Others))
	blocks := notKnown
	if doc.FreeBlocks != nil {
		blocks = "at most " + show.Int(doc.FreeBlocks) + " free, " + show.Int(doc.FragmentedBlocks) + " fragmented by single IPs"
	}
	p.Field("/28s", blocks)
	p.Field("left", cmp.Or(r.Trend.Words(), "unknown: takes two of EC2's counts, from the daemons, --watch or --replay of a recording"))
	if len(doc.Blocks) == 0 {
		why := "its IPv4 range is unknown: the upstream daemon does not report it"
		if doc.CIDR != "" {
			why = show.Safe(doc.CIDR) + " is not the IPv4 CIDR of a VPC subnet (/16 to /28)"
		}
		p.Field("map", "none: "+why)
		return p.Lines
	}
	p.Lines = append(p.Lines, "", p.Opts.Palette.Paint(paint.Head, "MAP OF /28S"))
	p.Lines = append(p.Lines, grid(doc.Blocks, p.Opts)...)
	p.Lines = append(p.Lines, "")
	return append(p.Lines, legend(doc.Blocks, p.Opts.Palette)...)
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
			b.WriteString(opts.Palette.Paint(s.class, s.letter))
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
	return signs[0]
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
			lines = append(lines, fmt.Sprintf("%s %5d  %s", palette.Paint(s.class, s.letter), n, s.word))
		}
	}
	return lines
}

// blockTable lists the /28s for -o csv.
func blockTable(blocks []document.SubnetBlock) table.Table {
	t := table.Table{Columns: []table.Column{{Name: "PREFIX"}, {Name: "USE"}, {Name: "HELD", Right: true}, {Name: "USED", Right: true}, {Name: "NODE"}}}
	for _, b := range blocks {
		t.Rows = append(t.Rows, table.Cells(b.Prefix.String(), b.Use, strconv.Itoa(b.Held), strconv.Itoa(b.Used), show.OrUnknown(b.Node)))
	}
	return t
}
