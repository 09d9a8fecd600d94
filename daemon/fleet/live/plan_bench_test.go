package live

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPlan picks a node and reports it done, in fleets of several sizes.
func BenchmarkPlan(b *testing.B) {
	for _, size := range []int{100, 500, 5000, 50000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p := NewPlan(PlanConfig{Workers: 32, Background: time.Millisecond, Interval: MinOpen})
			var visible []string
			for i := range size {
				name := fmt.Sprintf("node-%05d", i)
				p.Put(name)
				if i < 50 {
					visible = append(visible, name)
				}
			}
			p.Focus(visible[0], visible, false)
			now := epoch
			b.ReportAllocs()
			for b.Loop() {
				name, ok := p.Next(now)
				if !ok {
					b.Fatal("no node is due")
				}
				now = now.Add(time.Duration(10e9 / size)) // a round takes 10 s
				p.Done(name, now, Result{OK: true, Took: time.Millisecond})
			}
		})
	}
}

// BenchmarkFocus scrolls the visible rows by a page.
func BenchmarkFocus(b *testing.B) {
	p := NewPlan(PlanConfig{Workers: 32})
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprintf("node-%05d", i))
		p.Put(names[i])
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i = (i + 50) % 4900
		p.Focus("", names[i:i+50], false)
	}
}
