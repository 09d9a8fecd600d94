package bundle

import (
	"regexp"
	"sync"
)

// lazy is a regular expression that is compiled on first use: most commands need none.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
