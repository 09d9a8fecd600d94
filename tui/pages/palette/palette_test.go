package palette

import "testing"

func TestComplete(t *testing.T) {
	t.Parallel()
	items := []Item{
		{Kind: Object, Name: "sub-node"}, {Kind: Screen, Name: "subnets", Title: "Subnets"}, {Kind: Command, Name: "sort", Argument: true},
		{Kind: Object, Name: "ip-10-0-3-17"}, {Kind: Command, Name: "quit", Title: "leave"},
	}
	for text, want := range map[string]string{"sub": "subnets", "3-17": "ip-10-0-3-17", "sort -ip": "sort", "leave": "quit", "SUBN": "subnets", "": "subnets"} {
		got := Complete(items, text)
		if len(got) == 0 || got[0].Name != want {
			t.Errorf("%q gives %v, want %s", text, got, want)
		}
	}
	if got := Complete(items, "zzz"); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := (Item{Name: "sort", Argument: true}).Completion(); got != "sort " {
		t.Errorf("%q", got)
	}
}
