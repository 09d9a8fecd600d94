package introspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
)

// ParseAddr parses an IP address without a zone. A zone can be any text (RFC 4007 leaves it to
// the host), so with one an address from a node could control a terminal; pods and ENIs have
// none.
func ParseAddr(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("parse address: %.60q is not an address", s)
	case addr.Zone() != "":
		return netip.Addr{}, fmt.Errorf("parse address: %.60q has a zone", s)
	}
	return addr, nil
}

// Unmarshal reads a JSON document as encoding/json does, and refuses addresses that ParseAddr
// refuses.
func Unmarshal(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return err
	}
	if !bytes.Contains(body, []byte("%")) && !bytes.Contains(body, []byte(`\u0025`)) {
		return nil // a zone begins with a percent sign
	}
	if addr, found := zoned(reflect.ValueOf(into)); found {
		return fmt.Errorf("address %.60q has a zone", addr.String())
	}
	return nil
}

// zoned finds an address with a zone in a document.
func zoned(v reflect.Value) (netip.Addr, bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return zoned(v.Elem())
		}
	case reflect.Struct:
		if addr, ok := v.Interface().(netip.Addr); ok {
			return addr, addr.Zone() != ""
		}
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if addr, found := zoned(v.Field(i)); found {
				return addr, true
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() <= reflect.Complex128 || v.Type().Elem().Kind() == reflect.String {
			return netip.Addr{}, false
		}
		for i := range v.Len() {
			if addr, found := zoned(v.Index(i)); found {
				return addr, true
			}
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			if addr, found := zoned(entry.Key()); found {
				return addr, true
			}
			if addr, found := zoned(entry.Value()); found {
				return addr, true
			}
		}
	}
	return netip.Addr{}, false
}
