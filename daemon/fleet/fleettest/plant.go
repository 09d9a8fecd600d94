package fleettest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Hostile is text that would control a terminal, were it printed as it is: a window title, C0
// and C1 sequences, bidi and invisible characters, line ends.
const Hostile = "\x1b]0;PWNED\x07\x1b[2J\x1b[31m\u009b31m\u202e\u2066\u200b\u2028\r\n\t\x00\x7f"

// filledKey is the key that Fill adds to maps. In JSON, an object with it is a map.
const filledKey = "node.kubernetes.io/filled"

// Fill gives a value to every member of a document that has none, so that none is left out when
// Plant goes over the document's texts. Lists and maps get an element.
func Fill(doc any) { fill(reflect.ValueOf(doc).Elem()) }

func fill(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		if at.IsZero() {
			*at = Now()
		}
		return
	case *netip.Addr:
		if !at.IsValid() {
			*at = netip.AddrFrom4([4]byte{10, 0, 0, 9})
		}
		return
	case *netip.Prefix:
		if !at.IsValid() {
			*at = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, 9}), 32)
		}
		return
	case *json.RawMessage:
		return
	}
	switch v.Kind() {
	case reflect.String:
		if v.Len() == 0 {
			v.SetString("filled")
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem())
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		filled := reflect.MakeMap(v.Type())
		for entry := v.MapRange(); entry.Next(); {
			filled.SetMapIndex(entry.Key(), element(entry.Value()))
		}
		filled.SetMapIndex(reflect.ValueOf(filledKey).Convert(v.Type().Key()), element(reflect.Zero(v.Type().Elem())))
		v.Set(filled)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

// element returns a filled copy of a value.
func element(of reflect.Value) reflect.Value {
	v := reflect.New(of.Type()).Elem()
	v.Set(of)
	fill(v)
	return v
}

// Tree returns a document as decoded JSON, for Plant.
func Tree(tb testing.TB, doc any) any {
	tb.Helper()
	body, err := json.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	tree, ok := parsed(string(body))
	if !ok {
		tb.Fatalf("no JSON: %.100s", body)
	}
	return tree
}

func parsed(text string) (tree any, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return tree, d.Decode(&tree) == nil
}

// Plant returns a copy of a document (from Tree) with text in place of those of its texts whose
// path is chosen, and calls chosen for each: strings, addresses, which get the text as their
// zone, keys of maps, and the same within JSON that is a string. A path is that of the schema,
// such as summary.cards[].mode: one path may lead to several texts.
func Plant(tree any, text string, chosen func(path string) bool) any {
	return planter{text, chosen}.plant(tree, "")
}

type planter struct {
	text   string
	chosen func(path string) bool
}

func (p planter) plant(tree any, path string) any {
	switch at := tree.(type) {
	case map[string]any:
		return p.object(at, path)
	case []any:
		out := make([]any, len(at))
		for i, v := range at {
			out[i] = p.plant(v, path+"[]")
		}
		return out
	case string:
		return p.string(at, path)
	}
	return tree
}

func (p planter) object(at map[string]any, path string) any {
	_, mapped := at[filledKey]
	out := make(map[string]any, len(at))
	for _, key := range slices.Sorted(maps.Keys(at)) {
		name, inner := key, strings.TrimPrefix(path+"."+key, ".")
		if mapped {
			inner = path + ".*"
			if p.chosen(path + "{}") {
				name = p.text + key
			}
		}
		out[name] = p.plant(at[key], inner)
	}
	return out
}

func (p planter) string(at, path string) any {
	if strings.HasPrefix(at, "{") || strings.HasPrefix(at, "[") {
		if tree, ok := parsed(at); ok {
			return marshal(p.plant(tree, path+"~"))
		}
	}
	switch _, err := netip.ParseAddr(at); {
	case !p.chosen(path):
		return at
	case err == nil:
		return "fe80::1%" + p.text
	}
	return at + p.text
}

// Texts lists the paths of a document's texts.
func Texts(tree any) []string {
	found := map[string]bool{}
	Plant(tree, "", func(path string) bool {
		found[path] = true
		return false
	})
	return slices.Sorted(maps.Keys(found))
}

// JSON writes a tree on one line.
func JSON(tree any) []byte { return []byte(marshal(tree)) }

func marshal(tree any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(tree) // decoded JSON can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// Shown is which commands show planted text. Of one that never does, it proves nothing that no
// control characters are printed.
type Shown struct {
	mu       sync.Mutex
	commands map[string]bool // guarded by mu
}

// escaped is how the forms of output write the beginning of Hostile.
var escaped = regexp.MustCompile(`(\\x1b|\\u001b|\\e)\]0;PWNED`)

// Add notes whether an output of a command shows planted text.
func (s *Shown) Add(command, output string) {
	if !escaped.MatchString(output) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commands == nil {
		s.commands = map[string]bool{}
	}
	s.commands[command] = true
}

// Check fails for commands that showed no planted text, unless they are silent: a silent one shows
// no text that others choose, for the reason given, and must not.
func (s *Shown) Check(tb testing.TB, commands []string, silent map[string]string) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range commands {
		if shown := s.commands[c]; shown == (silent[c] != "") {
			tb.Errorf("%q shows planted text: %v; said to be silent: %q", c, shown, silent[c])
		}
	}
	for c := range silent {
		if !slices.Contains(commands, c) {
			tb.Errorf("%q is said to be silent, but is not run", c)
		}
	}
}
