package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/doctor/causes"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation/corpus"
	"cnictl/testenv/text/golden"
)

// idle are the members that no check judges, with the reason.
var idle = map[string]*regexp.Regexp{
	"the name by which the object was asked for":                                     regexp.MustCompile(`^(k8s\.sa\.Name|k8s\.conflist\.File)$`),
	"how many alike nodes an entry of a file stands for":                             regexp.MustCompile(`^k8s\.node\.Count$`),
	"who wrote an event: its reason and text say what it is":                         regexp.MustCompile(`^k8s\.evt\[\]\.Source$`),
	"klog's level: kubelet's lines are known by their words":                         regexp.MustCompile(`^log\.kubelet\.Lines\[\]\.Level$`),
	"selects a SecurityGroupPolicy only by the account's labels, which are not read": regexp.MustCompile(`^k8s\.pod\[\]\.ServiceAccount$`),
	"a document of our daemon for screens, which repeats what is judged":             regexp.MustCompile(`^intro\.(summary|config|plan|events|failures|pod)\b`),
	"the form of a document":                                                         regexp.MustCompile(`\.(APIVersion|Kind)$`),
	"says how much of a log was read, not what it says":                              regexp.MustCompile(`^log\..*\.(From|To|Truncated|Every)$`),
	"of other nodes only what the scheduler needs is judged":                         regexp.MustCompile(`^k8s\.nodes\[\]`),
}

const (
	mostUnjudged = 0 // it only gets smaller
	membersFile  = "testdata/members.txt"
	unjudgedFile = "testdata/members-unjudged.txt"
)

// TestMembers: everything that is read matters. For each member of the evidence some absurd value
// changes the report of the situation that testdata/members.txt names, or the member is in idle, or in
// testdata/members-unjudged.txt, which must only get shorter. With -update a situation is looked for
// where the file has none; that takes minutes.
func TestMembers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(membersFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(unjudgedFile)
	if err != nil {
		t.Fatal(err)
	}
	unjudged := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); line[0] != '#' {
			unjudged[line] = true
		}
	}
	if len(unjudged) > mostUnjudged {
		t.Errorf("%s has %d members: judge them, or do not read them", unjudgedFile, len(unjudged))
	}
	shownBy, in := map[string]string{}, map[string][]string{} // situation by member, and members by situation
	lends := map[string][]string{}                            // members by the situation whose values they take
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && line[0] != '#' {
			shownBy[words[0]], in[words[1]] = words[1], append(in[words[1]], words[0])
			if len(words) > 2 {
				lends[words[2]] = append(lends[words[2]], words[0])
			}
		}
	}
	moves := map[string]Move{}
	for _, f := range fixtures(t) {
		moves[f.Name] = f.move
	}
	failing := map[string]bool{}
	lent := map[string][]reflect.Value{}
	for _, s := range situations(t, func(s corpus.Situation) bool { return len(lends[s.Name]) > 0 }) {
		leaves := leavesOf(s)
		for _, member := range lends[s.Name] {
			lent[member] = values(leaves[member])
		}
	}
	for _, s := range situations(t, func(s corpus.Situation) bool { return len(in[s.Name]) > 0 }) {
		to := func(member string, of reflect.Type) []reflect.Value {
			if v := lent[member]; v != nil {
				return v
			}
			return absurdities(of)
		}
		for member, ok := range tried(s, moves, in[s.Name], to) {
			failing[member] = !ok
		}
	}
	var missing []string
	used := map[string]bool{}
	for _, member := range members() {
		unseen, known := failing[member]
		judged := known && !unseen
		for reason, of := range idle {
			if !judged && of.MatchString(member) {
				used[reason], judged = true, true
			}
		}
		if !judged && !unjudged[member] {
			missing = append(missing, member)
		}
		if unjudged[member] && shownBy[member] != "" {
			t.Errorf("%s is in both files", member)
		}
		delete(unjudged, member)
		delete(shownBy, member)
	}
	for member := range shownBy {
		t.Errorf("%s: there is no member %s", membersFile, member)
	}
	for member := range unjudged {
		t.Errorf("%s: there is no member %s", unjudgedFile, member)
	}
	for reason := range idle {
		if !used[reason] {
			t.Errorf("idle without need: %s", reason)
		}
	}
	if len(idle) > 15 {
		t.Errorf("%d reasons for members that nothing judges", len(idle))
	}
	if golden.Update() {
		was := strings.Split(strings.TrimSpace(string(text)), "\n")
		lines := slices.DeleteFunc(was, func(line string) bool {
			member, _, _ := strings.Cut(line, " ")
			fails, known := failing[member]
			return line[0] == '#' || fails || !known
		})
		missing = search(t, moves, missing, func(line string) { lines = append(lines, line) })
		slices.Sort(lines)
		const head = "# Of each member of the evidence: a situation whose report an absurd value of it changes, or the value that it\n" +
			"# has in another situation, which is the third word. Made by go test -update.\n"
		if err := os.WriteFile(membersFile, []byte(head+strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, member := range missing {
		t.Errorf("%s changes no report: judge it, or do not read it", member)
	}
}

// situations reads situations anew, because the test changes them.
func situations(t *testing.T, wants func(corpus.Situation) bool) (out []corpus.Situation) {
	t.Helper()
	for _, dir := range []string{"../causes/testdata", "testdata"} {
		read, err := corpus.ReadSome(dir, wants)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, read...)
	}
	return out
}

// search finds situations for members, and returns those for which there is none. It begins with
// those whose value is the rarest, and gives it the value that most have.
func search(t *testing.T, moves map[string]Move, missing []string, found func(line string)) (without []string) {
	const most = 25 // situations per member
	type kept struct {
		situation string
		value     reflect.Value
	}
	all := slices.DeleteFunc(situations(t, func(corpus.Situation) bool { return true }), func(s corpus.Situation) bool {
		return len(s.Evidence.Nodes) > 3 // slow
	})
	has := map[string]map[string][]kept{} // by member and by text of the value
	for _, s := range all {
		leaves := leavesOf(s)
		for _, member := range missing {
			for _, l := range leaves[member] {
				text := textOf(l.Value)
				if has[member] == nil {
					has[member] = map[string][]kept{}
				}
				has[member][text] = append(has[member][text], kept{s.Name, values([]leaf{l})[0]})
			}
		}
	}
	by := map[string]corpus.Situation{}
	for _, s := range all {
		by[s.Name] = s
	}
	for _, member := range missing {
		rarest := slices.SortedFunc(maps.Values(has[member]), func(a, b []kept) int { return len(a) - len(b) })
		line := func() string {
			tries := 0
			for _, of := range rarest {
				for _, k := range of {
					if tries++; tries > most {
						return ""
					}
					for _, usual := range append([][]kept{nil}, rarest[max(0, len(rarest)-3):]...) {
						to := func(_ string, of reflect.Type) []reflect.Value { return absurdities(of) }
						text := member + " " + k.situation
						if usual != nil {
							to = func(string, reflect.Type) []reflect.Value { return []reflect.Value{usual[0].value} }
							text += " " + usual[0].situation
						}
						for _, ok := range tried(by[k.situation], moves, []string{member}, to) {
							if ok {
								return text
							}
						}
					}
				}
			}
			return ""
		}()
		t.Logf("%s: %d values, %s", member, len(rarest), cmp.Or(line, "none"))
		if line == "" {
			without = append(without, member)
			continue
		}
		found(line)
	}
	return without
}

// leavesOf returns the leaves of all readings of a situation, by member.
func leavesOf(s corpus.Situation) map[string][]leaf {
	leaves := map[string][]leaf{}
	for _, n := range s.Evidence.Nodes {
		for id, source := range sources(reflect.ValueOf(n.Last()).Elem()) {
			if source.FieldByName("Missing").String() == "" {
				visit(id, source.FieldByName("Content"), nil, func(path string, l leaf) { leaves[path] = append(leaves[path], l) })
			}
		}
	}
	return leaves
}

// textOf is the same for equal values.
func textOf(v reflect.Value) string {
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return fmt.Sprintf("%+v", v.Interface())
	}
	return string(text)
}

// values copies the values of leaves.
func values(leaves []leaf) (out []reflect.Value) {
	for _, l := range leaves {
		v := reflect.New(l.Type()).Elem()
		v.Set(l.Value)
		out = append(out, v)
	}
	return out
}

// tried reports of each member that a situation has whether an absurd value changes its report, or
// one that the member has elsewhere.
func tried(
	s corpus.Situation, moves map[string]Move, members []string, to func(member string, of reflect.Type) []reflect.Value,
) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		diagnose := func() string {
			r := causes.Diagnose(s.Evidence, causes.Options{})
			if move, ok := moves[s.Name]; ok {
				r = move.Diagnose(s.Evidence, nil)
			}
			text, err := json.Marshal(r)
			if err != nil {
				panic(err)
			}
			return string(text)
		}
		leaves, before := leavesOf(s), ""
		for _, member := range members {
			if len(leaves[member]) == 0 {
				continue
			}
			if before == "" {
				before = diagnose()
			}
			to := to(member, leaves[member][0].Type())
			if !yield(member, changes(leaves[member], to, func() bool { return diagnose() != before })) {
				return
			}
		}
	}
}

// sources are the sources of a reading by their identifiers.
func sources(reading reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for _, field := range reflect.VisibleFields(reading.Type()) {
			if id := field.Tag.Get("json"); id != "" && id != "-" && !yield(id, reading.FieldByIndex(field.Index)) {
				return
			}
		}
	}
}

// members are all members of the evidence, whether a situation has them or not.
func members() (out []string) {
	for id, source := range sources(reflect.ValueOf(&evidence.Reading{}).Elem()) {
		visit(id, filled(source.FieldByName("Content").Type(), 0), nil, func(path string, _ leaf) { out = append(out, path) })
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// filled returns a value with something in each list, map and pointer; some types hold themselves.
func filled(of reflect.Type, depth int) reflect.Value {
	v := reflect.New(of).Elem()
	if depth > 8 {
		return v
	}
	switch of.Kind() {
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(of) {
			if field.IsExported() && len(field.Index) == 1 {
				v.FieldByIndex(field.Index).Set(filled(field.Type, depth+1))
			}
		}
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(of.Elem(), depth+1)))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		v.SetMapIndex(filled(of.Key(), depth+1), filled(of.Elem(), depth+1))
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(filled(of.Elem(), depth+1))
	}
	return v
}

// changes reports whether a value makes a difference in all leaves, which are one member, or in one.
func changes(leaves []leaf, to []reflect.Value, differs func() bool) bool {
	was := values(leaves)
	restore := func() {
		for i, l := range leaves {
			l.set(was[i])
		}
	}
	defer restore()
	for _, v := range to {
		for _, l := range leaves {
			l.set(v)
		}
		if differs() {
			return true
		}
	}
	restore()
	if len(leaves) == 1 {
		return false
	}
	for i, l := range leaves {
		for _, v := range to {
			l.set(v)
			if differs() {
				return true
			}
		}
		l.set(was[i])
	}
	return false
}

// leaf is a value without members, which can be changed.
type leaf struct {
	reflect.Value
	store func() // into the map that holds it; nil if none does
}

func (l leaf) set(v reflect.Value) {
	l.Value.Set(v)
	if l.store != nil {
		l.store()
	}
}

// visit calls f for the leaves of a value, and of the first elements of its lists and maps.
func visit(path string, v reflect.Value, store func(), f func(string, leaf)) {
	const most = 8
	if v.Kind() == reflect.Struct && whole(v.Type()) {
		f(path, leaf{v, store})
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(v.Type()) {
			if field.IsExported() && len(field.Index) == 1 && !strings.Contains(path, ".Previous") { // a log holds another
				visit(path+"."+field.Name, v.FieldByIndex(field.Index), store, f)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			f(path, leaf{v, store})
			return
		}
		for i := range min(v.Len(), most) {
			visit(path+"[]", v.Index(i), store, f)
		}
	case reflect.Map:
		f(path, leaf{v, store})
		for i, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return 0 }) {
			if i == most || v.Type().Elem().Kind() != reflect.Struct {
				break
			}
			inner := reflect.New(v.Type().Elem()).Elem()
			inner.Set(v.MapIndex(key))
			visit(path+"{}", inner, func() {
				v.SetMapIndex(key, inner)
				if store != nil {
					store()
				}
			}, f)
		}
	case reflect.Pointer:
		if whole(v.Type().Elem()) {
			f(path, leaf{v, store})
		} else if !v.IsNil() {
			visit(path, v.Elem(), store, f)
		}
	default:
		f(path, leaf{v, store})
	}
}

// whole reports whether the values of a type are changed as a whole, not by their members.
func whole(of reflect.Type) bool {
	switch of {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.Prefix](), reflect.TypeFor[evidence.Version]():
		return true
	}
	return of.Kind() != reflect.Struct
}

// absurdities are values that no healthy node has.
func absurdities(of reflect.Type) (out []reflect.Value) {
	add := func(values ...any) {
		for _, v := range values {
			out = append(out, reflect.ValueOf(v).Convert(of))
		}
	}
	out = append(out, reflect.Zero(of))
	switch of {
	case reflect.TypeFor[time.Time]():
		for _, year := range []int{2020, 2026, 2030} { // of the situations' own year a moment before they were read
			add(time.Date(year, 11, 21, 14, 1, 0, 0, time.UTC))
		}
		return out
	case reflect.TypeFor[netip.Addr]():
		add(netip.MustParseAddr("203.0.113.9"))
		return out
	case reflect.TypeFor[netip.Prefix]():
		add(netip.MustParsePrefix("203.0.113.0/30"))
		return out
	}
	switch of.Kind() {
	case reflect.Slice:
		if of.Elem().Kind() == reflect.String {
			list := reflect.MakeSlice(of, 1, 1)
			list.Index(0).SetString("absurd")
			out = append(out, list)
		}
	case reflect.Map:
		if of == reflect.TypeFor[map[string]string]() {
			out = append(out, reflect.ValueOf(map[string]string{"absurd": "absurd"}))
		}
	case reflect.Bool:
		add(true)
	case reflect.String:
		add("absurd", "FATAL error: failed", "Pending")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		add(-1, 1, 97)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		add(1, 200)
	case reflect.Float32, reflect.Float64:
		add(99.9, 1e9)
	case reflect.Pointer:
		if whole(of.Elem()) {
			for _, inner := range absurdities(of.Elem()) {
				p := reflect.New(of.Elem())
				p.Elem().Set(inner)
				out = append(out, p)
			}
		}
	}
	return out
}
