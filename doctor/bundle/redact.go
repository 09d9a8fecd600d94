package bundle

import (
	"net/netip"
	"reflect"
	"time"

	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// rewriter copies evidence and replaces texts and addresses in it.
type rewriter struct {
	text    func(text string) string
	setting func(name, value string) (string, string) // of a map of texts
	addr    func(netip.Addr) netip.Addr
}

// rewrite copies the evidence.
func (r rewriter) rewrite(ev *evidence.Evidence) *evidence.Evidence {
	return r.value(reflect.ValueOf(ev)).Interface().(*evidence.Evidence)
}

func (r rewriter) value(v reflect.Value) reflect.Value {
	switch x := v.Interface().(type) {
	case time.Time:
		return v
	case netip.Addr:
		return reflect.ValueOf(r.addr(x))
	case netip.Prefix:
		return reflect.ValueOf(netip.PrefixFrom(r.addr(x.Addr()), x.Bits()))
	case map[string]string:
		if x == nil {
			return v
		}
		out := make(map[string]string, len(x))
		for name, value := range x {
			name, value = r.setting(name, value)
			out[name] = value
		}
		return reflect.ValueOf(out)
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(r.text(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(r.value(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(r.value(v.Field(i)))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(r.value(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for key, value := range v.Seq2() {
				out.SetMapIndex(r.value(key), r.value(value))
			}
		}
	}
	return out
}

// accountID matches the number of an AWS account, as in names of roles and images. The end of a
// UUID may look like one.
var accountID = lazy(`(^|[^0-9A-Za-z-])[0-9]{12}($|[^0-9A-Za-z-])`)

const hiddenAccount = "${1}" + evidence.HiddenAccount + "${2}"

// redacted removes what must not leave the cluster.
func redacted(ev *evidence.Evidence) *evidence.Evidence {
	text := func(text string) string { return accountID().ReplaceAllString(scrub.Line(text), hiddenAccount) }
	return rewriter{
		text:    text,
		setting: func(name, value string) (string, string) { return text(name), text(scrub.Setting(name, value)) },
		addr:    func(a netip.Addr) netip.Addr { return a },
	}.rewrite(ev)
}
