package fakeaws

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

const (
	minPage     = 5
	maxPage     = 1000
	defaultPage = 1000 // EC2 limits answers to this even without MaxResults
	maxTypePage = 100  // of DescribeInstanceTypes, with or without MaxResults
)

// paging is a Describe call's MaxResults and NextToken.
type paging struct {
	size   int
	offset int
	kind   string
}

// readPaging reads a call's paging. withIDs is true if the call names its resources, which
// EC2 does not page.
func readPaging(f *form, kind string, withIDs bool) paging {
	p, most := paging{size: defaultPage, kind: kind}, maxPage
	if kind == "type" {
		p.size, most = maxTypePage, maxTypePage
	}
	if f.has("MaxResults") {
		p.size = f.number("MaxResults")
		if p.size < minPage || p.size > most {
			f.reject(codeInvalidValue, "Value ( %d ) for parameter maxResults is invalid. Expecting a value between %d and %d.", p.size, minPage, most)
		}
		if withIDs {
			f.reject(codeInvalidCombination, "The parameter maxResults cannot be used with ids")
		}
	}
	if t, ok := f.get("NextToken"); ok && t != "" {
		p.offset = decodeToken(t, kind)
		if p.offset < 0 {
			f.reject(codeInvalidToken, "The token '%s' is invalid", t)
		}
	}
	return p
}

func decodeToken(t, kind string) int {
	raw, err := base64.RawURLEncoding.DecodeString(t)
	if err != nil {
		return -1
	}
	number, ok := strings.CutPrefix(string(raw), kind+":")
	if !ok {
		return -1
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return n
}

// cut returns the requested page of all results, and the token of the next, "" at the end.
func cut[T any](p paging, all []T) ([]T, string) {
	from := min(max(p.offset, 0), len(all))
	to := min(from+p.size, len(all))
	if to == len(all) {
		return all[from:to], ""
	}
	return all[from:to], base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s:%d", p.kind, to))
}
