package netconf

import (
	"errors"

	"cnictl/daemon/api/netnames"
)

// decoder fills a configuration. Like encoding/json, it skips values of the wrong type,
// which are reported at the end: it records the first of all, and those of name and
// cniVersion, which are checked before the others.
type decoder struct {
	cursor
	any, name, cniVer *mismatch
}

// mismatch is a value of the wrong type.
type mismatch struct {
	err   error
	field Field
}

// document reads a configuration that has passed checkSyntax.
func (d *decoder) document(member func(key string)) {
	switch d.kind() {
	case "object":
		d.object(member)
	case "null": // not given
	default:
		d.mismatch(&d.name, "", "object", "an object")
	}
}

// problem returns what is wrong with a network's configuration. The checks are in the
// order of a plugin built on containernetworking/cni, so that of two mistakes the same one
// is reported.
func (d *decoder) problem(network, badSettings string) error {
	switch {
	case d.name != nil:
		return &Error{Kind: NotJSON, Err: wrap(textNotJSON, d.name.err), Field: d.name.field}
	case network == "":
		return &Error{Kind: NoName, Err: errNoName}
	case !netnames.ValidName(network):
		return &Error{Kind: BadName, Name: network, Err: errBadName}
	case d.cniVer != nil:
		return &Error{Kind: BadVersion, Err: wrap("decoding version from network config: ", d.cniVer.err), Field: d.cniVer.field}
	case d.any != nil:
		return &Error{Kind: BadSettings, Err: wrap(badSettings, d.any.err), Field: d.any.field}
	}
	return nil
}

// keys are the keys of the configuration; those with strings first, in the order of
// NetConf.texts.
var keys = [...]string{
	"cniVersion", "name", "type", "vethPrefix", "mtu", "podSGEnforcingMode", "pluginLogFile", "pluginLogLevel",
	"runtimeConfig", "prevResult", "capabilities",
}

func (c *NetConf) texts() [8]*string {
	return [8]*string{
		&c.CNIVersion, &c.Name, &c.Type, &c.VethPrefix, &c.MTU, &c.PodSGEnforcingMode, &c.PluginLogFile, &c.PluginLogLevel,
	}
}

func (d *decoder) member(conf *NetConf, key string) {
	i := keyIndex(key, keys[:])
	texts := conf.texts()
	switch {
	case i < 0:
		d.raw()
	case i < len(texts):
		d.textMember(keys[i], texts[i])
	case keys[i] == "runtimeConfig":
		d.runtimeConfig(&conf.RuntimeConfig)
	case keys[i] == "prevResult":
		conf.RawPrevResult = d.raw()
	default:
		d.capabilities(&conf.Capabilities)
	}
}

// keyIndex finds a key, exactly or else ignoring case; −1 if unknown.
func keyIndex(key string, known []string) int {
	for i, k := range known {
		if k == key {
			return i
		}
	}
	for i, k := range known {
		if sameKey(key, k) {
			return i
		}
	}
	return -1
}

// textMember reads a string; null leaves it unchanged.
func (d *decoder) textMember(key string, into *string) {
	kind := d.kind()
	if kind == "string" {
		*into = d.text()
		return
	}
	if kind != "null" {
		accepted := "a string"
		if kind == "number" || kind == "bool" {
			ahead := d.cursor
			accepted = `a string: "` + string(ahead.raw()) + `"`
		}
		d.mismatch(&d.any, key, "string", accepted)
		switch key {
		case "name":
			d.mismatch(&d.name, key, "string", accepted)
		case "cniVersion":
			d.mismatch(&d.cniVer, key, "string", accepted)
		}
	}
	d.raw()
}

// mismatch records that the next value, which it does not consume, has the wrong type,
// unless one is recorded already. An empty key means the configuration itself.
func (d *decoder) mismatch(into **mismatch, key, want, accepted string) {
	if *into != nil {
		return
	}
	kind, ahead := d.kind(), d.cursor
	f := Field{Key: key, Value: "an " + kind, Accepted: accepted}
	if kind != "object" && kind != "array" {
		f.Value = string(ahead.raw())
	}
	what := key
	if key == "" {
		what = "the configuration"
	}
	*into = &mismatch{errors.New(d.isNot(what, want)), f}
}

// isNot is the error for a value of an unexpected type.
func (c *cursor) isNot(what, want string) string {
	return what + " is " + c.kind() + ", not " + want + "," + offset(c.pos)
}

func (d *decoder) runtimeConfig(into *RuntimeConfig) {
	switch d.kind() {
	case "object":
		d.object(func(key string) {
			if keyIndex(key, []string{AnnotationCapability}) < 0 {
				d.raw()
				return
			}
			d.annotations(&into.PodAnnotations)
		})
		return
	case "null":
	default:
		d.mismatch(&d.any, "runtimeConfig", "object", "an object")
	}
	d.raw()
}

func (d *decoder) annotations(into *map[string]string) {
	const name, accepted = "runtimeConfig." + AnnotationCapability, "an object of strings"
	switch d.kind() {
	case "object":
		if *into == nil {
			*into = map[string]string{}
		}
		d.object(func(key string) {
			switch d.kind() {
			case "string":
				(*into)[key] = d.text()
				return
			case "null":
				(*into)[key] = ""
			default:
				d.mismatch(&d.any, name, "string", accepted)
			}
			d.raw()
		})
		return
	case "null":
		*into = nil
	default:
		d.mismatch(&d.any, name, "object", accepted)
	}
	d.raw()
}

func (d *decoder) capabilities(into *map[string]bool) {
	const name, accepted = "capabilities", "an object of booleans"
	switch d.kind() {
	case "object":
		if *into == nil {
			*into = map[string]bool{}
		}
		d.object(func(key string) {
			switch d.kind() {
			case "bool", "null":
				(*into)[key] = d.peek() == 't'
			default:
				d.mismatch(&d.any, name, "bool", accepted)
			}
			d.raw()
		})
		return
	case "null":
		*into = nil
	default:
		d.mismatch(&d.any, name, "object", accepted)
	}
	d.raw()
}
