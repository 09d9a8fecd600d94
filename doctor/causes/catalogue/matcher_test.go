package catalogue

import (
	"strings"
	"testing"
)

// TestMatcher: the matcher finds a signature in a line if and only if the line has it
// unchanged.
func TestMatcher(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	lines := []string{
		"", "IP stats for Network Card 0 - total IPs: 9", "nothing to see here", `{"msg":"unauthorized operation"}`,
		"throttling of the queue", "Throttling: rate exceeded", "InsufficientCidr", "insufficientcidrblocks",
	}
	var all []*pattern
	add := func(signatures []Signature) {
		all = append(all, patterns(source{}, signatures, nil)...)
		for _, s := range signatures {
			text := strings.ReplaceAll(s.Text, "…", " x ")
			lines = append(lines, text, `{"level":"info","msg":"ab `+strings.ReplaceAll(text, `"`, `\"`)+` cd"}`, strings.ToUpper(text), text[:len(text)-2])
		}
	}
	for e := range All() {
		add(e.Signatures)
	}
	for _, s := range Symptoms() {
		add(s.Signatures)
	}
	for _, line := range lines {
		want := false
		for _, p := range all {
			want = want || p.in(normal(line), line)
		}
		if got := m.Match([]byte(line)); got != want {
			t.Errorf("Match(%q) = %v, it has a signature: %v", line, got, want)
		}
	}
}
