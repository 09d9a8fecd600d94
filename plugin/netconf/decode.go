package netconf

import "errors"

// decoder fills a NetConf and remembers values of the wrong type, which encoding/json
// skips and reports at the end: the first of all, and the first of two keys that are
// looked at before the others.
type decoder struct {
	cursor
	conf              NetConf
	any, name, cniVer *mismatch
}

// mismatch is a value of the wrong type: in the library's words and in ours.
type mismatch struct {
	err   error
	field Field
}

// decode reads text that checkSyntax has passed.
func decode(in []byte) *decoder {
	d := &decoder{cursor: cursor{in: in}, conf: defaults()}
	switch d.kind() {
	case "object":
		d.object(d.member)
	case "null": // nothing said
	default:
		d.name = &mismatch{
			errors.New("json: cannot unmarshal " + d.kind() + ` into Go value of type struct { Name string "json:\"name\"" }`),
			d.field("", "an object"),
		}
	}
	return d
}

// Keys of the configuration; the texts first, in the order of decoder.texts.
var keys = [...]string{
	"cniVersion", "name", "type", "vethPrefix", "mtu", "podSGEnforcingMode", "pluginLogFile", "pluginLogLevel",
	"runtimeConfig", "prevResult", "capabilities",
}

func (d *decoder) texts() [8]*string {
	c := &d.conf
	return [8]*string{
		&c.CNIVersion, &c.Name, &c.Type, &c.VethPrefix, &c.MTU, &c.PodSGEnforcingMode, &c.PluginLogFile, &c.PluginLogLevel,
	}
}

func (d *decoder) member(key string) {
	i := keyIndex(key, keys[:])
	texts := d.texts()
	switch {
	case i < 0:
		d.raw()
	case i < len(texts):
		d.textMember(i, texts[i])
	case keys[i] == "runtimeConfig":
		d.runtimeConfig()
	case keys[i] == "prevResult":
		d.conf.RawPrevResult = d.raw()
	default:
		d.capabilities()
	}
}

// keyIndex finds a key, exactly or else without regard to case; −1 if it is none.
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

func (d *decoder) textMember(i int, into *string) {
	switch kind := d.kind(); kind {
	case "string":
		*into = d.text()
		return
	case "null":
	default:
		field := d.field(keys[i], "a string")
		if kind == "number" || kind == "bool" {
			field.Accepted = `a string: "` + field.Value + `"`
		}
		d.first(&d.any, "NetConf."+keys[i], "string", field)
		switch keys[i] {
		case "name":
			d.first(&d.name, ".name", "string", field)
		case "cniVersion":
			d.first(&d.cniVer, ".cniVersion", "string", field)
		}
	}
	d.raw()
}

// mismatch notes that the next value, which belongs to a key that is no text, has the
// wrong type.
func (d *decoder) mismatch(path, goType, key, accepted string) {
	d.first(&d.any, path, goType, d.field(key, accepted))
}

// first notes that the next value has the wrong type, unless such a value came before.
func (d *decoder) first(into **mismatch, path, goType string, field Field) {
	if *into == nil {
		*into = &mismatch{errors.New("json: cannot unmarshal " + d.kind() + " into Go struct field " + path + " of type " + goType), field}
	}
}

// field describes the next value without reading it.
func (d *decoder) field(key, accepted string) Field {
	ahead := d.cursor
	f := Field{Key: key, Value: "an " + d.kind(), Accepted: accepted}
	if kind := d.kind(); kind != "object" && kind != "array" {
		f.Value = string(ahead.raw())
	}
	return f
}

func (d *decoder) runtimeConfig() {
	const path = "NetConf.runtimeConfig"
	switch d.kind() {
	case "object":
		d.object(func(key string) {
			if keyIndex(key, []string{AnnotationCapability}) < 0 {
				d.raw()
				return
			}
			d.annotations()
		})
		return
	case "null":
	default:
		d.mismatch(path, "netconf.RuntimeConfig", "runtimeConfig", "an object")
	}
	d.raw()
}

const annotationsKey = "runtimeConfig." + AnnotationCapability

func (d *decoder) annotations() {
	const path = "RuntimeConfig.runtimeConfig." + AnnotationCapability
	into := &d.conf.RuntimeConfig.PodAnnotations
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
				d.mismatch(path, "string", annotationsKey, "an object of strings")
			}
			d.raw()
		})
		return
	case "null":
		*into = nil
	default:
		d.mismatch(path, "map[string]string", annotationsKey, "an object of strings")
	}
	d.raw()
}

func (d *decoder) capabilities() {
	const path = "NetConf.capabilities"
	switch d.kind() {
	case "object":
		if d.conf.Capabilities == nil {
			d.conf.Capabilities = map[string]bool{}
		}
		d.object(func(key string) {
			switch d.kind() {
			case "bool", "null":
				d.conf.Capabilities[key] = d.peek() == 't'
			default:
				d.mismatch(path, "bool", "capabilities", "an object of booleans")
			}
			d.raw()
		})
		return
	case "null":
		d.conf.Capabilities = nil
	default:
		d.mismatch(path, "map[string]bool", "capabilities", "an object of booleans")
	}
	d.raw()
}
