package status

// parts counts the rows of each part of the page; room is how many of them may be shown.
type (
	parts struct{ causes, subnets, nodes int }
	room  = parts
)

// Bounds of the parts.
const (
	rowsWithoutTerminal = 20 // for each part, if no terminal limits them
	head                = 2  // lines of a part besides its rows: a blank line and the header
)

// lines returns the number of lines that a part with these rows takes.
func lines(rows int) int {
	if rows == 0 {
		return 0
	}
	return rows + head
}

// share divides the lines below the top ones among the parts. Problems come first, then the
// subnets that run out of addresses; the nodes, worst first, get the rest.
func (fr Frame) share(top int, all parts) room {
	switch {
	case fr.All:
		return all
	case fr.Height <= 0:
		return room{min(all.causes, rowsWithoutTerminal), min(all.subnets, rowsWithoutTerminal), min(all.nodes, rowsWithoutTerminal)}
	}
	const fewest = 3
	left := fr.Height - 1 - top
	var r room
	left = give(left, &r.causes, min(all.causes, max(fewest, left/3)))
	left = give(left, &r.subnets, min(all.subnets, max(fewest-1, left/4)))
	left = give(left, &r.nodes, all.nodes)
	left = give(left, &r.causes, all.causes)
	give(left, &r.subnets, all.subnets)
	return r
}

// give raises a part to want rows, or to as many as the remaining lines allow, and returns
// the lines that then remain.
func give(left int, rows *int, want int) int {
	left += lines(*rows)
	*rows = max(*rows, min(want, left-head))
	return left - lines(*rows)
}
