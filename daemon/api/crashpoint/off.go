//go:build !crashpoints

package crashpoint

// Here marks a point.
func Here(Point) {}

// BeforeEC2 and AfterEC2 mark the points of an EC2 action that changes something; of
// other actions nothing.
func BeforeEC2(string) {}

// AfterEC2 is described with BeforeEC2.
func AfterEC2(string) {}
