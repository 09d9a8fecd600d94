package limits

import "strings"

// The table is text: one line per type, each ending in "\n", in byte order of the name.
// Fields, separated by single spaces:
//
//	name enis ipv4 ipv6 hypervisor metal trunking branches card cards vcpus mib arch published
//
// "-" is an unknown fact; metal and trunking are y or n; cards is index:enis joined by
// "|". The generator has checked every line, so parsing cannot fail.

// find returns a type's line in a sorted table.
func find(table, name string) (string, bool) {
	lo, hi := 0, len(table) // both at line starts (or the end)
	for lo < hi {
		mid := strings.LastIndexByte(table[lo:lo+(hi-lo)/2], '\n') + 1 + lo
		end := mid + strings.IndexByte(table[mid:], '\n')
		line := table[mid:end]
		key, _, _ := strings.Cut(line, " ")
		switch {
		case key == name:
			return line, true
		case key < name:
			lo = end + 1
		default:
			hi = mid
		}
	}
	return "", false
}

func parse(line string) Instance {
	f := fields{line}
	return Instance{
		Type:               f.next(),
		MaxENIs:            f.number(0),
		IPv4PerENI:         f.number(0),
		IPv6PerENI:         f.number(-1),
		Hypervisor:         f.word(),
		BareMetal:          f.next() == "y",
		TrunkingCompatible: f.tri(),
		BranchENIs:         f.number(0),
		DefaultCard:        f.number(0),
		Cards:              f.cards(),
		VCPUs:              f.number(0),
		MemoryMiB:          f.number(0),
		Arch:               f.word(),
		PublishedMaxENIs:   f.number(0),
	}
}

type fields struct{ rest string }

func (f *fields) next() string {
	head, rest, _ := strings.Cut(f.rest, " ")
	f.rest = rest
	return head
}

func (f *fields) word() string {
	if w := f.next(); w != "-" {
		return w
	}
	return ""
}

func (f *fields) number(unknown int) int {
	w := f.next()
	if w == "-" {
		return unknown
	}
	return digits(w)
}

func (f *fields) tri() Tri {
	switch f.next() {
	case "y":
		return Yes
	case "n":
		return No
	}
	return Unknown
}

func (f *fields) cards() []Card {
	list := f.next()
	cards := make([]Card, 0, strings.Count(list, "|")+1)
	for list != "" {
		var one string
		one, list, _ = strings.Cut(list, "|")
		index, enis, _ := strings.Cut(one, ":")
		cards = append(cards, Card{Index: digits(index), MaxENIs: digits(enis)})
	}
	return cards
}

// digits parses a decimal number that the generator wrote.
func digits(s string) int {
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}
