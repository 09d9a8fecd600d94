package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

type row struct {
	name   string
	state  string
	warm   int // -1: unknown
	age    int // in seconds, -1: unknown
	labels map[string]string
}

func known(v int) (float64, bool) { return float64(v), v >= 0 }

func text(v int) string {
	if v < 0 {
		return "-"
	}
	return strconv.Itoa(v)
}

var columns = []Column[row]{
	{Name: "node", Text: func(r row) string { return r.name }},
	{Name: "state", Text: func(r row) string { return r.state }},
	{Name: "warm", Text: func(r row) string { return text(r.warm) }, Number: func(r row) (float64, bool) { return known(r.warm) }},
	{Name: "age", Wide: true, Text: func(r row) string { return text(r.age) + "s" }, Number: func(r row) (float64, bool) { return known(r.age) }},
	{Name: "ip%", Named: true, Text: func(r row) string { return text(r.warm*10) + "%" }, Number: func(r row) (float64, bool) { return known(r.warm * 10) }},
	{Name: "rank", Named: true, Text: func(r row) string { return r.state }, Rank: func(r row) int { return len(r.state) }, Also: func(r row) string {
		if r.state == "ok" {
			return "first"
		}
		return ""
	}},
}

func options() Options[row] {
	return Options[row]{Columns: columns, Label: func(r row, key string) (string, bool) {
		v, ok := r.labels[key]
		return v, ok
	}}
}

var rows = []row{
	{"ip-10-0-3-17", "NO IP", 0, 90, map[string]string{"team": "Shop"}},
	{"ip-10-0-9-201", "ok", 16, 7200, map[string]string{"team": "pay", "x/y": ""}},
	{"ip-10-0-7-8", "max-pods-over", 90, 200000, nil},
	{"Zürich-東京", "stale 2m: timeout", -1, -1, nil},
}

func names(rows []row) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.name[max(0, len(r.name)-3):])
	}
	return strings.Join(out, " ")
}

func TestFilter_Match(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "-17 201 7-8 京", " \t ": "-17 201 7-8 京",
		"10-0": "-17 201 7-8", "IP-10": "-17 201 7-8", `"no ip"`: "-17", "no": "-17", "zürich": "京", "ZÜRICH": "京", "東": "京",
		"!10-0": "京", "10-0 !ok": "-17 7-8", "nothing": "", "200000": "", "7200s": "",
		`re:-\d$`: "7-8", `re:^OK$`: "201", `!re:^ip`: "京", `re:"no ip"`: "-17", `re:"a""b"`: "", "re:10|東": "-17 201 7-8 京",
		"state=ok": "201", "state!=ok": "-17 7-8 京", "state=*over": "7-8", "STATE=OK": "201", "state=o": "", "state=*": "-17 201 7-8 京", `state="no ip"`: "-17", "!state=ok": "-17 7-8 京",
		"node=zürich*": "京", `state=stale*`: "京", "state=*a*e*m*t": "京", "node=*0*0*7*8": "7-8",
		"warm=16": "201", "warm=16.0": "201", "warm==16": "201", "state==ok": "201", "!state==ok": "-17 7-8 京", "label:team==shop": "-17", `warm="=16"`: "", "stale~": "", "stal:": "", `"warm~0"`: "", `"state:ok"`: "",
		"rank=first": "201", "rank!=first": "-17 7-8 京", "rank=ok": "201", "warm!=16": "-17 7-8 京", "warm=-": "京", "warm=1*": "201", "warm=": "",
		"warm>15": "201 7-8", "warm>=16": "201 7-8", "warm<16": "-17", "warm<=16": "-17 201", "warm>-1": "-17 201 7-8", "!warm>15": "-17 京",
		"age>1h": "201 7-8", "age>=2h": "201 7-8", "age<2m": "-17", "age>2d": "7-8", "age=1m30s": "-17", "age>1h59m59s": "201 7-8", "age>1w": "",
		"ip%>=160%": "201 7-8", "ip%=0": "-17", "warm>1e1": "201 7-8",
		"label:team": "-17 201", "label:team=shop": "-17", "label:team!=shop": "201 7-8 京", "label:x/y=": "201", "!label:team": "7-8 京", "label:team=*p*": "-17 201", "label:no": "",
		`"state=ok"`: "", `"!ok"`: "", "10-0 warm>0 state=ok": "201", `st"al"e`: "京",
	} {
		f, err := Parse(in, options())
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		var got []row
		for _, r := range rows {
			if f.Match(r) {
				got = append(got, r)
			}
		}
		if names(got) != want {
			t.Errorf("%s: %s, want %s", in, names(got), want)
		}
		if f.Empty() != (strings.TrimSpace(in) == "") {
			t.Errorf("%s: empty %v", in, f.Empty())
		}
	}
	var none *Filter[row]
	if !none.Empty() || !none.Match(rows[0]) || none.String() != "" {
		t.Error("no filter is not an empty one")
	}
}

func TestFilter_Visible(t *testing.T) {
	t.Parallel()
	o := options()
	o.Visible = []string{"age"}
	f, err := Parse("7200", o)
	if err != nil || !f.Match(rows[1]) || f.Match(rows[0]) {
		t.Error(err)
	}
	if f, err = Parse("ok", o); err != nil || f.Match(rows[1]) {
		t.Errorf("a word is found in a column that is not visible, %v", err)
	}
	if f, err = Parse("state=ok", o); err != nil || !f.Match(rows[1]) {
		t.Errorf("a column that is not visible cannot be named, %v", err)
	}
}

// A column's own name wins over another column's synonym.
func TestMeant_Synonyms(t *testing.T) {
	t.Parallel()
	named := func(names ...string) (out []Column[row]) {
		for _, n := range names {
			out = append(out, Column[row]{Name: n, Header: strings.ToUpper(n)})
		}
		return out
	}
	for name, x := range map[string]struct {
		columns []Column[row]
		want    string
	}{
		"dev": {named("device"), "device"}, "used": {named("used", "assigned"), "used"}, "USED": {named("assigned"), "assigned"},
		"ip": {named("address"), "address"}, "since": {named("for"), "for"}, "age": {named("for"), "for"}, "block": {named("cidr"), "cidr"},
		"status": {named("state"), "state"}, "state": {named("status"), "status"}, "cool": {named("cooling"), "cooling"}, "for": {named("age"), ""},
	} {
		c, ok := Meant(x.columns, name)
		if c.Name != x.want || ok != (x.want != "") {
			t.Errorf("%s: %q %v, want %q", name, c.Name, ok, x.want)
		}
	}
}

// Filters and orders also accept columns that a screen does not show.
func TestArrange(t *testing.T) {
	t.Parallel()
	got := Arrange(columns, Shown{Name: "age", Drop: 3, Least: 9}, Shown{Name: "rank", Wide: true})
	if names := strings.Join(Names(got), " "); names != "age rank node state warm ip%" {
		t.Error(names)
	}
	if c := got[0]; c.Wide || c.Named || c.Drop != 3 || c.Least != 9 {
		t.Errorf("age: %+v", c)
	}
	for i, c := range got[1:] {
		if c.Wide != (i == 0) || c.Named != (i > 0) {
			t.Errorf("%s: wide %v, named %v", c.Name, c.Wide, c.Named)
		}
	}
}

func TestParse_Errors(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ok stat=x":                      `filter, character 4: "stat" is not a column; did you mean state?`,
		"zz=x":                           `filter, character 1: "zz" is not a column; the columns are node, state, warm, age, ip%, rank`,
		"=x":                             `filter, character 1: "" is not a column; the columns are node, state, warm, age, ip%, rank`,
		"node>3":                         `filter, character 1: node is text: node cannot be compared with >; use node=VALUE or node!=VALUE`,
		"warm>much":                      `filter, character 1: "much" is not a number; warm> needs one such as 20, 80% or 2h30m`,
		"warm>":                          `filter, character 1: "" is not a number; warm> needs one such as 20, 80% or 2h30m`,
		"warm>1m1h":                      `filter, character 1: "1m1h" is not a number; warm> needs one such as 20, 80% or 2h30m`,
		`a "b`:                           `filter, character 3: unclosed quote (opened at 3)`,
		"re:":                            `filter, character 1: re: needs an expression, as in re:EXPRESSION`,
		"京 re:(":                         `filter, character 3: re: missing closing ): ` + "`(?i)(`" + ``,
		"!":                              `filter, character 1: ! needs a term, as in !WORD`,
		"a ! b":                          `filter, character 3: ! needs a term, as in !WORD`,
		"label:":                         `filter, character 1: label: needs a name, as in label:NAME or label:NAME=VALUE`,
		"free~0 warm~0":                  `filter, character 8: warm~ is not a comparison; use warm=VALUE, warm!=VALUE or, for numbers, warm>N; quote a word that contains such characters`,
		"a WARM:0":                       `filter, character 3: warm: is not a comparison; use warm=VALUE, warm!=VALUE or, for numbers, warm>N; quote a word that contains such characters`,
		"!warm!0":                        `filter, character 1: warm! is not a comparison; use warm=VALUE, warm!=VALUE or, for numbers, warm>N; quote a word that contains such characters`,
		"state=~ok":                      `filter, character 1: state=~ is not a comparison; use =, == or !=, or for numbers >, >=, < or <=; quote a value that starts with such characters`,
		"warm=>3":                        `filter, character 1: warm=> is not a comparison; use =, == or !=, or for numbers >, >=, < or <=; quote a value that starts with such characters`,
		"state===ok":                     `filter, character 1: state== is not a comparison; use =, == or !=, or for numbers >, >=, < or <=; quote a value that starts with such characters`,
		"label:team:":                    `filter, character 1: label:team: is not a valid label name; use label:NAME or label:NAME=VALUE`,
		"label:team:=x":                  `filter, character 1: label:team: is not a valid label name; use label:NAME or label:NAME=VALUE`,
		"label:a=~x":                     `filter, character 1: label:a=~ is not a comparison; use =, == or !=, or for numbers >, >=, < or <=; quote a value that starts with such characters`,
		"label:a>3":                      `filter, character 1: label:a can only be compared with = or !=`,
		"a\x1bb":                         `filter, character 2: an unprintable character (\x1b)`,
		"a\xff":                          `filter, character 2: invalid UTF-8`,
		strings.Repeat("a ", 33):         `filter: more than 32 terms`,
		strings.Repeat("a", 1025):        `filter: 1025 bytes long; the limit is 1024`,
		"re:" + strings.Repeat("a", 257): `filter, character 1: the expression is 257 bytes long; the limit is 256`,
		"re:(((a{99}){99}){99})":         "filter, character 1: re: invalid repeat count: `{99}`",
	} {
		f, err := Parse(in, options())
		if err == nil || err.Error() != want || f != nil {
			t.Errorf("%.40q: %v\nwant %s", in, err, want)
		}
	}
	if _, err := Parse("label:a", Options[row]{Columns: columns}); err == nil || !strings.Contains(err.Error(), "have no labels") {
		t.Error(err)
	}
}

// FuzzParse: Parse returns either a filter or an error, matching never fails, and a printed
// filter parses to the same filter.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "a !b", `re:^a "b ""c"`, "state!=ok warm>20 age<=2h30m", "label:x/y=z* !label:q", `"!a=b"`, "re:[", "ip%>80%", `x"y z"=3`, `"a~b" state="=x"`, "warm==3", "warm~3", `state="a*b c"`, `re:"x y"`, "a\tb", `""`, `!""`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		filter, err := Parse(in, options())
		if (err == nil) != (filter != nil) {
			t.Fatalf("%q: %v with %v", in, err, filter)
		}
		if err != nil {
			if !utf8.ValidString(err.Error()) || strings.ContainsFunc(err.Error(), func(r rune) bool { return !strconv.IsPrint(r) }) {
				t.Fatalf("%q: the error %q is not safe to print", in, err)
			}
			return
		}
		printed := filter.String()
		again, err := Parse(printed, options())
		if err != nil {
			if len(printed) > MaxText {
				return // quotes made it too long
			}
			t.Fatalf("%q prints %q: %v", in, printed, err)
		}
		if again.String() != printed {
			t.Fatalf("%q prints %q, then %q", in, printed, again.String())
		}
		for _, r := range rows {
			if filter.Match(r) != again.Match(r) {
				t.Fatalf("%q and %q differ on %+v", in, printed, r)
			}
		}
	})
}

func TestParseOrder(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "-17 201 7-8 京", "warm": "-17 201 7-8 京", "-warm": "7-8 201 -17 京", "node": "京 -17 7-8 201", "-node": "201 7-8 -17 京", // in byte order
		"rank": "201 -17 7-8 京", "-rank,node": "京 7-8 -17 201", " warm , -node ": "-17 201 7-8 京", "WARM": "-17 201 7-8 京", "state": "-17 7-8 201 京",
	} {
		o, err := ParseOrder(in, columns)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		got := slices.Clone(rows)
		o.Sort(got, nil)
		if names(got) != want {
			t.Errorf("%q: %s, want %s", in, names(got), want)
		}
		if again, err := ParseOrder(o.String(), columns); err != nil || again.String() != o.String() {
			t.Errorf("%q prints %q: %v", in, o, err)
		}
	}
	for in, want := range map[string]string{
		"wam": `order: "wam" at 1 is not a column; the columns are node, state, warm, age, ip%, rank`, "node,-": `order: "-" at 6 is not a column; the columns are node, state, warm, age, ip%, rank`,
		"warm,-warm": `order: "warm" at 6 is a duplicate`, "war": `order: "war" at 1 is not a column; did you mean warm?`, ",": `order: "" at 1 is not a column; the columns are node, state, warm, age, ip%, rank`,
	} {
		if _, err := ParseOrder(in, columns); err == nil || err.Error() != want {
			t.Errorf("%q: %v", in, err)
		}
	}
	if _, err := ParseOrder(strings.Repeat("a", MaxText+1), columns); err == nil {
		t.Error("no bound")
	}
	o := By(columns[2], true)
	if name, descending, ok := o.First(); name != "warm" || !descending || !ok || o.String() != "-warm" {
		t.Error(o)
	}
}

// TestSort_Property: sorting permutes, follows the keys, puts unknown values last and breaks
// ties by name, then by position.
func TestSort_Property(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		n := random.IntN(60)
		in := make([]row, n)
		for i := range in {
			in[i] = row{name: strconv.Itoa(random.IntN(10)), state: strings.Repeat("x", random.IntN(4)), warm: random.IntN(6) - 1, age: i}
		}
		text := []string{"warm", "-warm", "state,-warm", "-state,warm", "-rank,state,-warm", ""}[random.IntN(6)]
		o, err := ParseOrder(text, columns)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Clone(in)
		o.Sort(got, func(r row) string { return r.name })
		// The same with a slow stable sort.
		want := slices.Clone(in)
		slices.SortStableFunc(want, func(a, b row) int { return strings.Compare(a.name, b.name) })
		for _, k := range slices.Backward(o.keys) {
			slices.SortStableFunc(want, func(a, b row) int {
				x, y := k.column.value(a), k.column.value(b)
				switch {
				case x.unknown != y.unknown:
					return map[bool]int{true: 1, false: -1}[x.unknown]
				case x.unknown:
					return 0
				}
				less := x.number < y.number || x.number == y.number && x.text < y.text
				more := x.number > y.number || x.number == y.number && x.text > y.text
				if k.descending {
					less, more = more, less
				}
				return map[bool]int{true: -1}[less] + map[bool]int{true: 1}[more]
			})
		}
		for i := range got {
			if got[i].age != want[i].age {
				t.Fatalf("%s of %+v\n gives %+v\n not   %+v", text, in, got, want)
			}
		}
	}
}

func TestSort_NaN(t *testing.T) {
	t.Parallel()
	c := Column[float64]{Name: "x", Text: func(float64) string { return "" }, Number: func(v float64) (float64, bool) { return v, true }}
	got := []float64{3, math.NaN(), 1, math.Inf(1)}
	By(c, false).Sort(got, nil)
	if got[0] != 1 || got[1] != 3 || !math.IsNaN(got[3]) {
		t.Error(got)
	}
}

func FuzzParseOrder(f *testing.F) {
	for _, s := range []string{"", "-warm,node", ",", "--node", "rank,,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		o, err := ParseOrder(in, columns)
		if err != nil {
			return
		}
		if again, err := ParseOrder(o.String(), columns); err != nil || again.String() != o.String() {
			t.Fatalf("%q prints %q: %v", in, o, err)
		}
		got := slices.Clone(rows)
		o.Sort(got, func(r row) string { return r.name })
	})
}

// large returns 5,000 rows of 12 columns of prepared texts.
func large() ([]*[12]string, []Column[*[12]string]) {
	out := make([]*[12]string, 5000)
	for i := range out {
		var r [12]string
		for j := range r {
			r[j] = fmt.Sprintf("v%d-%d", j, (i*7919+j*31)%5000)
		}
		r[0] = fmt.Sprintf("ip-10-0-%d-%d", i/250, i%250)
		out[i] = &r
	}
	cols := make([]Column[*[12]string], 12)
	for j := range cols {
		cols[j] = Column[*[12]string]{Name: fmt.Sprintf("c%d", j), Text: func(r *[12]string) string { return r[j] }}
	}
	cols[1].Number = func(r *[12]string) (float64, bool) { return float64(len(r[1])*1000) + float64(r[1][3]), true }
	return out, cols
}

func BenchmarkMatch(b *testing.B) {
	rows, cols := large()
	for name, text := range map[string]string{"word": "nowhere", "compare": "c1>3000 c2=v2-1*", "regexp": "re:no.*where"} {
		b.Run(name, func(b *testing.B) {
			f, err := Parse(text, Options[*[12]string]{Columns: cols})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range rows {
					f.Match(r)
				}
			}
		})
	}
}

func BenchmarkSort(b *testing.B) {
	rows, cols := large()
	for _, text := range []string{"-c1", "c2", "c1,-c3"} {
		b.Run(text, func(b *testing.B) {
			o, err := ParseOrder(text, cols)
			if err != nil {
				b.Fatal(err)
			}
			work := make([]*[12]string, len(rows))
			b.ReportAllocs()
			for b.Loop() {
				copy(work, rows)
				o.Sort(work, func(r *[12]string) string { return r[0] })
			}
		})
	}
}

// TestParse_BlanksAroundOperators: free < 5 is free<5; an empty value stays one.
func TestParse_BlanksAroundOperators(t *testing.T) {
	t.Parallel()
	type row struct{ name string }
	o := Options[row]{Columns: []Column[row]{
		{Name: "name", Text: func(r row) string { return r.name }},
		{Name: "free", Text: func(row) string { return "3" }, Number: func(row) (float64, bool) { return 3, true }},
	}}
	for text, want := range map[string]bool{
		"free < 5": true, "free <5": true, "free< 5": true, "free > 5": false, "free = 3 name = a*": true, "name != a": true, "name =ab": true,
		"name= ab": false, "!free < 5": false, "ab free >= 3": true, "name = ": false,
	} {
		f, err := Parse(text, o)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := f.Match(row{"ab"}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestHeaded: a column with another heading keeps its own in CSV, and answers to both; a heading in CSV
// comes after those that are shown.
func TestHeaded(t *testing.T) {
	t.Parallel()
	of := func(name, header string) Column[int] {
		return Column[int]{Name: name, Header: header, Text: strconv.Itoa}
	}
	columns := []Column[int]{of("wasted", "UNUSED").Headed("HELD FREE"), of("total", "SIZE").Headed("HELD"), of("now", "SIZE")}
	for name, want := range map[string]string{
		"wasted": "wasted", "unused": "wasted", "held-free": "wasted", "heldfree": "wasted", "held": "total", "total": "total", "size": "now",
	} {
		if c, ok := Meant(columns, name); !ok || c.Name != want {
			t.Errorf("%s: %q, want %q", name, c.Name, want)
		}
	}
	var heads []string
	for _, c := range Plain(columns) {
		heads = append(heads, c.Header+" "+c.Text(7))
	}
	if got := strings.Join(heads, ","); got != "UNUSED 7,SIZE 7,SIZE 7" {
		t.Errorf("CSV has %s", got)
	}
	if c := of("a", "B").Headed("C").Headed("D"); c.Header != "D" || c.CSV[0].Header != "B" {
		t.Errorf("%s in tables, %s in CSV", c.Header, c.CSV[0].Header)
	}
}
