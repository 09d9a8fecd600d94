package rules

import (
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/iptables"
)

// ParseNFT finds the table `ip aws-cni` in the output of `nft list table ip aws-cni` or
// `nft list ruleset`, nil if it is missing. Counters are read as 0.
func ParseNFT(text string) (*NFTTable, error) {
	p := nftParser{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if want := p.line(line); want != "" {
			return nil, &iptables.FormatError{What: "nft list", Line: n, Text: line, Want: want}
		}
	}
	if p.depth > 0 || p.pending != "" {
		return nil, &iptables.FormatError{What: "nft list", Want: "}"}
	}
	return p.table, nil
}

// nftParser goes through the blocks of a listing line by line.
type nftParser struct {
	table   *NFTTable
	chain   *NFTChain // being read
	ours    bool      // inside our table
	depth   int       // open braces
	skip    int       // depth at which the block being skipped began; 0: none
	pending string    // start of a rule that continues on the next line
}

func (p *nftParser) line(line string) (want string) {
	before := p.depth
	change := braces(line)
	p.depth += change
	switch {
	case p.depth < 0:
		return "no more }"
	case line == "" || line[0] == '#':
		p.depth = before
		return ""
	case p.skip > 0:
		if p.depth < p.skip {
			p.skip = 0
		}
		return ""
	case before == 0:
		return p.openTable(line)
	case before == 1:
		return p.inTable(line, change)
	default:
		return p.inChain(line, before)
	}
}

func (p *nftParser) openTable(line string) (want string) {
	f := strings.Fields(line)
	if len(f) < 4 || f[0] != "table" || f[3] != "{" {
		return "table <family> <name> {"
	}
	p.ours = f[1] == "ip" && f[2] == netnames.NFTTable
	switch {
	case p.depth == 0: // table ip x { }
	case p.depth != 1:
		return "one {"
	case !p.ours:
		p.skip = 1
	}
	if !p.ours {
		return ""
	}
	if p.table != nil {
		return "the table once"
	}
	p.table = &NFTTable{}
	return ""
}

func (p *nftParser) inTable(line string, change int) (want string) {
	f := strings.Fields(line)
	switch {
	case line == "}":
		return ""
	case f[0] == "}":
		return "} alone"
	case f[0] == "chain" && len(f) >= 3 && f[2] == "{":
		if _, twice := p.table.chain(f[1]); twice {
			return "each chain once"
		}
		p.table.Chains = append(p.table.Chains, NFTChain{Name: f[1]})
		if change == 1 {
			p.chain = &p.table.Chains[len(p.table.Chains)-1]
			return ""
		}
		if change == 0 { // chain x { }
			return ""
		}
		return "one {"
	default: // sets, maps, flags, comments: not ours
		p.table.Other = true
		if p.depth > 1 {
			p.skip = 2
		}
		return ""
	}
}

func (p *nftParser) inChain(line string, before int) (want string) {
	switch {
	case p.depth > 2: // a rule with a set over several lines
		p.pending += line + " "
		return ""
	case line == "}" && before == 2:
		p.chain = nil
		return ""
	case p.depth < 2:
		return "a rule, or } alone"
	case before > 2:
		line, p.pending = p.pending+line, ""
	}
	if strings.HasPrefix(line, "type ") && len(p.chain.Rules) == 0 && p.chain.Base == "" {
		p.chain.Base = line
		return ""
	}
	p.chain.Rules = append(p.chain.Rules, zeroCounters(line))
	return ""
}

// braces returns the number of opened minus closed braces outside strings.
func braces(line string) int {
	n, inString := 0, false
	for i := range len(line) {
		switch c := line[i]; {
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			n++
		case c == '}':
			n--
		}
	}
	return n
}

// zeroCounters sets a rule's counters to 0, so that rules can be compared.
func zeroCounters(rule string) string {
	f := strings.Fields(rule)
	for i := 0; i+4 < len(f); i++ {
		if f[i] == "counter" && f[i+1] == "packets" && f[i+3] == "bytes" {
			f[i+2], f[i+4] = "0", "0"
		}
	}
	return strings.Join(f, " ")
}

// canonicalNFT unifies how releases of nft print the same thing: words or signs for bit
// operations, numbers with or without leading zeros, names or numbers for priorities.
func canonicalNFT(rule string) string {
	rule = strings.NewReplacer("(", " ", ")", " ", ";", " ; ", "priority dstnat + 10", "priority -90").Replace(rule)
	f := strings.Fields(rule)
	out := f[:0]
	for i := 0; i < len(f); i++ {
		word := f[i]
		switch {
		case word == "and":
			word = "&"
		case word == "or":
			word = "|"
		case strings.HasPrefix(word, "0x"):
			if v, err := strconv.ParseUint(word[2:], 16, 64); err == nil {
				word = "0x" + strconv.FormatUint(v, 16)
			}
		case strings.HasSuffix(word, "/32"):
			word = nftRange(word)
		case word == "packets" && i > 0 && f[i-1] == "counter" && i+3 < len(f):
			i += 3
			continue
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}
