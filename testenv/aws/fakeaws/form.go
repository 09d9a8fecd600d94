package fakeaws

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxForm  = 1 << 20 // bytes of a request body
	maxItems = 1000    // members of one list parameter
)

// form reads the parameters of one call in EC2's flat form: Name, List.1, List.1.Name.
// err keeps the first error; unread parameters are an error too.
type form struct {
	prefix string
	shared *formState
}

type formState struct {
	values map[string]string
	used   map[string]bool
	err    error
	fault  Fault // of the call, set before its effect runs
}

// newForm takes a parsed body. Duplicate parameters are an error.
func newForm(v url.Values) *form {
	s := &formState{values: make(map[string]string, len(v)), used: map[string]bool{"Action": true, "Version": true}}
	f := &form{shared: s}
	for k, vs := range v {
		s.values[k] = vs[0]
		if len(vs) > 1 {
			f.reject(codeInvalidValue, "The parameter %s is given %d times", k, len(vs))
		}
	}
	return f
}

func (f *form) reject(code, format string, args ...any) {
	if f.shared.err == nil {
		f.shared.err = fail(code, format, args...)
	}
}

func (f *form) get(name string) (string, bool) {
	key := f.prefix + name
	f.shared.used[key] = true
	v, ok := f.shared.values[key]
	return v, ok
}

func (f *form) text(name string) string {
	v, _ := f.get(name)
	return v
}

func (f *form) required(name string) string {
	v, ok := f.get(name)
	if !ok || v == "" {
		f.reject(codeMissingParameter, "The request must contain the parameter %s", f.prefix+name)
	}
	return v
}

func (f *form) number(name string) int {
	v, ok := f.get(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		f.reject(codeInvalidValue, "Value (%s) for parameter %s is invalid: a number is accepted", v, f.prefix+name)
	}
	return int(n)
}

func (f *form) seconds(name string) time.Duration { return time.Duration(f.number(name)) * time.Second }

func (f *form) boolean(name string) bool {
	v, ok := f.get(name)
	if !ok {
		return false
	}
	switch v {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	f.reject(codeInvalidValue, "Value (%s) for parameter %s is invalid: true or false is accepted", v, f.prefix+name)
	return false
}

func (f *form) has(name string) bool {
	_, ok := f.get(name)
	return ok
}

// indexes lists the members of a list parameter in order.
func (f *form) indexes(name string) []int {
	seen := make(map[int]bool)
	prefix := f.prefix + name + "."
	for k := range f.shared.values {
		rest, ok := strings.CutPrefix(k, prefix)
		if !ok {
			continue
		}
		digits, _, _ := strings.Cut(rest, ".")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > maxItems || digits != strconv.Itoa(n) {
			f.reject(codeInvalidValue, "The parameter %s is not a list member: %s1 to %s%d are accepted", k, prefix, prefix, maxItems)
			continue
		}
		seen[n] = true
	}
	var out []int
	for n := range seen {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (f *form) list(name string) []string {
	var out []string
	for _, n := range f.indexes(name) {
		if v, ok := f.get(name + "." + strconv.Itoa(n)); ok {
			out = append(out, v)
		}
	}
	return out
}

// groups lists the members of a list of structures, each as a form.
func (f *form) groups(name string) []*form {
	var out []*form
	for _, n := range f.indexes(name) {
		out = append(out, &form{prefix: f.prefix + name + "." + strconv.Itoa(n) + ".", shared: f.shared})
	}
	return out
}

// group is one nested structure.
func (f *form) group(name string) *form {
	return &form{prefix: f.prefix + name + ".", shared: f.shared}
}

func (f *form) addr(name string) netip.Addr {
	v, ok := f.get(name)
	if !ok {
		return netip.Addr{}
	}
	return f.parseAddr(name, v)
}

func (f *form) parseAddr(name, v string) netip.Addr {
	a, err := netip.ParseAddr(v)
	if err != nil || a.Zone() != "" {
		f.reject(codeInvalidValue, "Value (%s) for parameter %s is invalid. Invalid IP address.", v, f.prefix+name)
	}
	return a
}

func (f *form) addrs(name string) []netip.Addr {
	var out []netip.Addr
	for _, v := range f.list(name) {
		out = append(out, f.parseAddr(name, v))
	}
	return out
}

func (f *form) prefixes(name string) []netip.Prefix {
	var out []netip.Prefix
	for _, v := range f.list(name) {
		p, err := netip.ParsePrefix(v)
		if err != nil {
			f.reject(codeInvalidValue, "Value (%s) for parameter %s is invalid. Invalid CIDR.", v, f.prefix+name)
		}
		out = append(out, p)
	}
	return out
}

// tags reads Tag.n.Key and Tag.n.Value.
func (f *form) tags() map[string]string {
	out := make(map[string]string)
	for _, t := range f.groups("Tag") {
		key := t.required("Key")
		if len(key) > 128 {
			t.reject(codeInvalidValue, "Tag key exceeds the maximum length of 128 characters")
		}
		value := t.text("Value")
		if len(value) > 256 {
			t.reject(codeInvalidValue, "Tag value exceeds the maximum length of 256 characters")
		}
		if strings.HasPrefix(key, "aws:") {
			t.reject(codeInvalidValue, "Tag keys starting with 'aws:' are reserved for internal use")
		}
		out[key] = value
	}
	return out
}

// finish returns the first error and the parameters that were not read.
func (f *form) finish() (unknown []string, err error) {
	for k := range f.shared.values {
		if !f.shared.used[k] {
			unknown = append(unknown, k)
		}
	}
	slices.Sort(unknown)
	if len(unknown) > 0 {
		return unknown, fail(codeUnknownParameter, "The parameter %s is not recognized", strings.Join(unknown, ", "))
	}
	return nil, f.shared.err
}

// params returns the parameters for the call log.
func (f *form) params() map[string]string {
	out := make(map[string]string, len(f.shared.values))
	for k, v := range f.shared.values {
		if k != "Action" && k != "Version" {
			out[k] = v
		}
	}
	return out
}
