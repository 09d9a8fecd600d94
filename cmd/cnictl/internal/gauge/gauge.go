// Package gauge draws one pool as a bar: assigned, cooling, free, and unused up to the limit.
// Each has its own sign, so that the bar is readable without colour. It is pure.
package gauge

import (
	"strings"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/fleet/show"
)

// Pool has the counts of a bar. A Limit of 0 is unknown: the bar is then full at the total.
type Pool struct{ Assigned, Cooling, Free, Limit int }

// Signs are the characters that fill the cells of a bar.
type Signs struct{ Assigned, Cooling, Free, Room string }

// Unicode returns the signs for UTF-8 terminals.
func Unicode() Signs { return signs(false) }

// ASCII returns the signs for terminals and files that are not UTF-8.
func ASCII() Signs { return signs(true) }

func signs(ascii bool) Signs {
	return Signs{show.Used.Pick(ascii), show.Cooling.Pick(ascii), show.Free.Pick(ascii), show.Room.Pick(ascii)}
}

// Bar draws a pool in width cells. Every count that is not zero gets a cell, if there are
// enough.
func Bar(p Pool, width int, signs Signs, palette paint.Palette) string {
	counts := []int{max(0, p.Assigned), max(0, p.Cooling), max(0, p.Free)}
	full := max(p.Limit, counts[0]+counts[1]+counts[2])
	cells := Split(counts, full, width)
	var b strings.Builder
	for i, part := range []struct {
		sign  string
		class paint.Class
	}{{signs.Assigned, paint.Assigned}, {signs.Cooling, paint.Cooling}, {signs.Free, paint.Free}} {
		b.WriteString(palette.Paint(part.class, strings.Repeat(part.sign, cells[i])))
		width -= cells[i]
	}
	b.WriteString(palette.Paint(paint.Dim, strings.Repeat(signs.Room, max(0, width))))
	return b.String()
}

// Split divides width cells in proportion to counts. It uses running sums, so that the cells
// add up; then each count left without a cell takes one from the largest.
func Split(counts []int, full, width int) []int {
	cells := make([]int, len(counts))
	if full <= 0 || width <= 0 {
		return cells
	}
	sum, done := 0.0, 0
	for i, n := range counts {
		sum += float64(n)
		upto := min(width, int(sum/float64(full)*float64(width)+0.5))
		cells[i] = upto - done
		done = upto
	}
	for i, n := range counts {
		if n == 0 || cells[i] > 0 {
			continue
		}
		if done < width {
			done++
			cells[i] = 1
			continue
		}
		largest := 0
		for j := range cells {
			if cells[j] > cells[largest] {
				largest = j
			}
		}
		if cells[largest] > 1 {
			cells[largest]--
			cells[i] = 1
		}
	}
	return cells
}
