//go:build !crashpoints

package crashpoint

// Here marks a point.
func Here(Point) {}

// BeforeEC2 marks the point before an EC2 action that changes something. It ignores other
// actions.
func BeforeEC2(string) {}

// AfterEC2 marks the point after an EC2 action, like BeforeEC2.
func AfterEC2(string) {}
