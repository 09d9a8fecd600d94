package bundle

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/lazy"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// place is where a text stands: a member of a type, or an element of that member.
type place struct {
	of     reflect.Value // the struct; the zero value if there is none
	member string
}

// is returns the place as TYPE.MEMBER, for tables.
func (p place) is() string {
	if !p.of.IsValid() {
		return p.member
	}
	return p.of.Type().Name() + "." + p.member
}

// rewriter copies a value and replaces texts and addresses in it, always in the same order.
type rewriter struct {
	object  func(v any) // before the members of a struct, if not nil
	text    func(at place, text string) string
	setting func(at place, name, value string) (string, string) // of a map of texts
	addr    func(netip.Addr) netip.Addr
	prefix  func(netip.Prefix) netip.Prefix
}

// rewrite copies a value.
func rewrite[T any](r rewriter, v T) T { return r.value(place{}, reflect.ValueOf(v)).Interface().(T) }

func (r rewriter) value(at place, v reflect.Value) reflect.Value {
	switch x := v.Interface().(type) {
	case time.Time:
		return v
	case netip.Addr:
		return reflect.ValueOf(r.addr(x))
	case netip.Prefix:
		return reflect.ValueOf(r.prefix(x))
	case map[string]string:
		if x == nil {
			return v
		}
		out := make(map[string]string, len(x))
		for _, key := range sorted(v) {
			name, value := r.setting(at, key.String(), x[key.String()])
			out[name] = value
		}
		return reflect.ValueOf(out)
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(r.text(at, v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(r.value(at, v.Elem()))
		}
	case reflect.Struct:
		if r.object != nil {
			r.object(v.Interface())
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			inner := place{v, f.Name}
			if f.Name == "Content" && strings.HasPrefix(v.Type().Name(), "Source[") {
				inner = at // a source is its content
			}
			out.Field(i).Set(r.value(inner, v.Field(i)))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(r.value(at, v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for _, key := range sorted(v) {
				out.SetMapIndex(r.value(at, key), r.value(at, v.MapIndex(key)))
			}
		}
	}
	return out
}

// sorted returns the keys of a map in their order.
func sorted(m reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(m.MapKeys()), func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
}

// accountID matches the number of an AWS account, as in names of roles and images. The end of a
// UUID may look like one.
var accountID = lazy.Regexp(`(^|[^0-9A-Za-z-])[0-9]{12}($|[^0-9A-Za-z-])`)

const hiddenAccount = "${1}" + evidence.HiddenAccount + "${2}"

// redacted removes what must not leave the cluster.
func redacted(ev *evidence.Evidence) *evidence.Evidence {
	text := func(text string) string { return accountID().ReplaceAllString(scrub.Line(text), hiddenAccount) }
	return rewrite(rewriter{
		text: func(_ place, t string) string { return text(t) },
		setting: func(_ place, name, value string) (string, string) {
			return text(name), text(scrub.Setting(name, value))
		},
		addr:   func(a netip.Addr) netip.Addr { return a },
		prefix: func(p netip.Prefix) netip.Prefix { return p },
	}, ev)
}
