package status

// parts are how many rows there are of each; room is how many lines each may take, of
// those that have rows.
type (
	parts struct{ nodes, problems, subnets, causes int }
	room  = parts
)

// Bounds of the parts, in rows.
const (
	mostCauses = 8
	causesFrom = 20 // lines to divide from which all parts have a share
	head       = 2  // of a part: a blank line, and its header or title
)

// lines is how many lines rows of a part take.
func lines(rows int) int {
	if rows == 0 {
		return 0
	}
	return rows + head
}

// share divides the height. What is wrong comes first: where not all fits on a low screen,
// the causes tell it once for all nodes, whose own STATUS tells it of each, and the problems
// go; a high screen has a share for each part.
func (fr Frame) share(top int, all parts) room {
	all.problems = max(1, all.problems) // "no problems" is a line too
	if fr.All {
		return all
	}
	all.causes = min(all.causes, mostCauses)
	if fr.Height <= 0 {
		all.nodes, all.problems = min(all.nodes, rowsWithoutTerminal), min(all.problems, rowsWithoutTerminal)
		return all
	}
	const headers = 1 + head // of the nodes and of the problems
	left := fr.Height - 1 - top - headers
	switch {
	case left < 2:
		return room{nodes: max(1, left)}
	case all.nodes+all.problems+lines(all.subnets)+lines(all.causes) <= left:
		return all
	case left < causesFrom && all.causes > 0:
		return low(left, all)
	}
	var r room
	r.subnets = min(all.subnets, left/6)
	left -= lines(r.subnets)
	r.causes = min(all.causes, left/4)
	left -= lines(r.causes)
	r.problems = min(all.problems, max(1, left/3))
	r.nodes = min(all.nodes, left-r.problems)
	r.problems = min(all.problems, left-r.nodes)
	r.grow(left-r.nodes-r.problems, all)
	return r
}

// low divides a low screen on which not all fits: the lines that the title of the problems
// has no use for are the causes'.
func low(left int, all parts) room {
	const subnetsFrom = 7
	r := room{causes: min(all.causes, max(1, left/4))}
	left -= r.causes
	if left >= subnetsFrom {
		r.subnets = min(all.subnets, 2)
		left -= lines(r.subnets)
	}
	r.nodes = min(all.nodes, left)
	left = r.grow(left-r.nodes, all)
	const fewest = 3 // of which two are problems and one says that there are more
	if left-head >= min(all.problems, fewest) {
		r.problems = min(all.problems, left-head)
	}
	return r
}

// grow gives lines that are left to the causes, then to the subnets, and tells what is left.
func (r *room) grow(left int, all parts) int {
	for _, part := range []struct {
		rows *int
		all  int
	}{{&r.causes, all.causes}, {&r.subnets, all.subnets}} {
		more := part.all - *part.rows
		if *part.rows == 0 {
			more = min(more, left-head)
		}
		if more = min(more, left); more <= 0 {
			continue
		}
		before := lines(*part.rows)
		*part.rows += more
		left -= lines(*part.rows) - before
	}
	return left
}
