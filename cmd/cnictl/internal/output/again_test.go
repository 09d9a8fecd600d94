package output

import (
	"slices"
	"strings"
	"testing"

	"cnictl/tui/query"
)

// pair is a row of a node.
type pair struct{ node, word string }

func pairs(text string) []pair {
	var out []pair
	for field := range strings.FieldsSeq(text) {
		node, word, _ := strings.Cut(field, "=")
		out = append(out, pair{node, word})
	}
	return out
}

// TestList_ARowThatCameBackIsPrinted: like kubectl with an object that is added again, the list
// prints a row that came back, even if it is identical to the one that disappeared.
func TestList_ARowThatCameBackIsPrinted(t *testing.T) {
	t.Parallel()
	list := func(complete bool) *List[pair] {
		return &List[pair]{
			Columns: []query.Column[pair]{{Name: "word", Text: func(p pair) string { return p.word }}}, Whole: complete,
			Key: func(p pair) string { return p.node + "\x00" + p.word[:1] },
		}
	}
	for name, x := range map[string]struct {
		complete bool
		steps    [][2]string // the rows, and which of them are printed; !a: node a left or came back
	}{
		"all rows":                      {true, [][2]string{{"a=x b=y", "a=x b=y"}, {"a=x b=y", ""}, {"a=x", ""}, {"a=x b=y", "b=y"}}},
		"those of some nodes":           {false, [][2]string{{"a=x b=y", "a=x b=y"}, {"a=x", ""}, {"b=y", ""}}},
		"one row of a node":             {false, [][2]string{{"a=x a=y", "a=x a=y"}, {"a=y", ""}, {"a=x a=y", "a=x"}}},
		"a node that left":              {false, [][2]string{{"a=x b=y", "a=x b=y"}, {"!a", ""}, {"a=x b=y", "a=x"}}},
		"a node that came back at once": {true, [][2]string{{"a=x b=y", "a=x b=y"}, {"!b", ""}, {"a=x b=y", "b=y"}}},
		"another of the name":           {true, [][2]string{{"a=x", "a=x"}, {"a=xx", "a=xx"}}},
	} {
		l := list(x.complete)
		for i, step := range x.steps {
			if node, left := strings.CutPrefix(step[0], "!"); left {
				l.Forget([]string{node})
				continue
			}
			if got := l.changed(pairs(step[0])); !slices.Equal(got, pairs(step[1])) {
				t.Errorf("%s: step %d: %v is printed, want %q", name, i, got, step[1])
			}
		}
	}
}
