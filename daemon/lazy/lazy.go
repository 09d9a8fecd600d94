// Package lazy makes values when they are first used: what a package makes when it is initialised, every
// program that links it pays for at each start.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp compiles a regular expression when it is first used.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
