package pages

import (
	"testing"

	"cnictl/daemon/api/introspect"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	doc := func(epoch string, from, to uint64) *introspect.NodeEvents {
		d := &introspect.NodeEvents{Epoch: epoch, Next: to}
		for i := from; i <= to; i++ {
			d.Items = append(d.Items, introspect.Event{Seq: i})
		}
		return d
	}
	var e Events
	e.Take(doc("a", 1, 5))
	e.Take(doc("a", 3, 7))
	e.Take(doc("a", 1, 2)) // late
	if len(e.Items) != 7 || e.After().Next != 7 {
		t.Errorf("%d items, next %d", len(e.Items), e.After().Next)
	}
	e.Take(doc("b", 1, 2)) // the daemon has restarted
	if len(e.Items) != 9 || e.After().Epoch != "b" {
		t.Errorf("%d items, %+v", len(e.Items), e.After())
	}
	e.Take(doc("b", 3, 3000))
	if len(e.Items) != introspect.MaxEvents || e.Items[len(e.Items)-1].Seq != 3000 {
		t.Errorf("%d items", len(e.Items))
	}
}
