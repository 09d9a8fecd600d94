package components

import "testing"

// Who reads back stays at the line he reads while others come and go before it.
func TestLogView_StaysAtTheLine(t *testing.T) {
	t.Parallel()
	lines := func(values ...int) (out []LogLine) {
		for _, v := range values {
			out = append(out, LogLine{Value: v})
		}
		return out
	}
	var v LogView
	v.Set(lines(1, 2, 3, 4, 5))
	if at, _ := v.Line(); at.Value != 5 || !v.Following() {
		t.Fatalf("follows at %v", at.Value)
	}
	v.move(2)
	for _, x := range []struct {
		now  []int
		want any
	}{{[]int{0, 1, 2, 3, 4, 5, 6}, 3}, {[]int{3, 4, 5, 6}, 3}, {[]int{5, 6}, 5}, {nil, nil}} {
		v.Set(lines(x.now...))
		if at, _ := v.Line(); at.Value != x.want {
			t.Errorf("of %v: at %v, want %v", x.now, at.Value, x.want)
		}
	}
}
