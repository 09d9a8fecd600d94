package bundle

import (
	"regexp"
	"sync"
)

// lazy compiles a regular expression on first use: most commands need none.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
