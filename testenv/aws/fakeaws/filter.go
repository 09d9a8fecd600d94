package fakeaws

import (
	"maps"
	"slices"
	"strings"
)

// filters are a Describe call's Filter.n members: each must match, by any of its values.
type filters []filter

type filter struct {
	name   string
	values []string
}

const maxFilterValues = 200 // EC2's limit per request

func readFilters(f *form) filters {
	var out filters
	total := 0
	for _, g := range f.groups("Filter") {
		one := filter{name: g.required("Name"), values: g.list("Value")}
		if len(one.values) == 0 {
			g.reject(codeMissingParameter, "The filter '%s' has no values", one.name)
		}
		total += len(one.values)
		out = append(out, one)
	}
	if total > maxFilterValues {
		f.reject("FilterLimitExceeded", "The maximum number of filter values is %d", maxFilterValues)
	}
	return out
}

type unknownFilterError struct{ name string }

func (e *unknownFilterError) Error() string { return "unknown filter " + e.name }

// attributes are what a resource can be filtered by. tags serves tag-key and tag:<key>.
type attributes struct {
	values map[string][]string
	tags   map[string]string
}

func (fs filters) match(a attributes) (bool, error) {
	all := true
	for _, f := range fs {
		have, ok := a.values[f.name]
		if !ok {
			have, ok = tagValues(f.name, a.tags)
		}
		if !ok {
			return false, &unknownFilterError{f.name}
		}
		if !slices.ContainsFunc(have, func(v string) bool { return slices.ContainsFunc(f.values, func(p string) bool { return glob(p, v) }) }) {
			all = false
		}
	}
	return all, nil
}

// check reports filters that a kind of resource does not have, even if there is no resource
// to match.
func (fs filters) check(a attributes) error {
	_, err := fs.match(a)
	return err
}

func tagValues(name string, tags map[string]string) ([]string, bool) {
	if tags == nil {
		return nil, false
	}
	if name == "tag-key" {
		return slices.Collect(maps.Keys(tags)), true
	}
	key, ok := strings.CutPrefix(name, "tag:")
	if !ok {
		return nil, false
	}
	if v, has := tags[key]; has {
		return []string{v}, true
	}
	return nil, true
}

// glob matches EC2's wildcards: * any run, ? any one character.
func glob(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
