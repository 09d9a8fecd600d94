package netconf

import (
	"errors"
	"strconv"
)

// EgressConf is the configuration of one run of egress-cni.
type EgressConf struct {
	CNIVersion     string
	Name           string
	Type           string
	MTU            string // decimal
	Enabled        string // "true"; anything else is off
	RandomizeSNAT  string // none, hashrandom; anything else means prng
	NodeIP         string // may be empty; its family is that of the egress
	PluginLogFile  string
	PluginLogLevel string

	IPAM          EgressIPAM
	RawPrevResult Raw // supplied by the runtime
}

// EgressIPAM is what egress-cni itself needs of the settings of its address management.
type EgressIPAM struct {
	Type    string
	DataDir string
}

var egressKeys = [...]string{
	"cniVersion", "name", "type", "mtu", "enabled", "randomizeSNAT", "nodeIP", "pluginLogFile", "pluginLogLevel", "ipam", "prevResult",
}

func (c *EgressConf) texts() [9]*string {
	return [9]*string{&c.CNIVersion, &c.Name, &c.Type, &c.MTU, &c.Enabled, &c.RandomizeSNAT, &c.NodeIP, &c.PluginLogFile, &c.PluginLogLevel}
}

// ParseEgress reads the configuration; errors are those of [Parse].
func ParseEgress(stdin []byte) (EgressConf, error) {
	if err := checkSyntax(stdin); err != nil {
		return EgressConf{}, &Error{Kind: NotJSON, Err: wrap("error unmarshall network config: ", err)}
	}
	d := decoder{cursor: cursor{in: stdin}}
	var conf EgressConf
	switch d.kind() {
	case "object":
		d.object(func(key string) { d.egressMember(&conf, key) })
	case "null": // nothing said
	default:
		d.name = &mismatch{
			errors.New("json: cannot unmarshal " + d.kind() + ` into Go value of type struct { Name string "json:\"name\"" }`),
			d.field("", "an object"),
		}
	}
	switch {
	case d.name != nil:
		return EgressConf{}, &Error{Kind: NotJSON, Err: wrap("error unmarshall network config: ", d.name.err), Field: d.name.field}
	case conf.Name == "":
		return conf, &Error{Kind: NoName, Err: errNoName}
	case !ValidName(conf.Name):
		return conf, &Error{Kind: BadName, Name: conf.Name, Err: errBadName}
	case d.cniVer != nil:
		return conf, &Error{Kind: BadVersion, Err: wrap("decoding version from network config: ", d.cniVer.err), Field: d.cniVer.field}
	case d.any != nil:
		return conf, &Error{Kind: BadSettings, Err: d.any.err, Field: d.any.field}
	}
	return conf, nil
}

func (d *decoder) egressMember(conf *EgressConf, key string) {
	i := keyIndex(key, egressKeys[:])
	texts := conf.texts()
	switch {
	case i < 0:
		d.raw()
	case i < len(texts):
		d.egressText(egressKeys[i], texts[i])
	case egressKeys[i] == "prevResult":
		if kind := d.kind(); kind != "object" && kind != "null" {
			d.mismatch("NetConf.prevResult", "map[string]interface {}", "prevResult", "an object")
		}
		conf.RawPrevResult = d.raw()
	default:
		d.egressIPAM(&conf.IPAM)
	}
}

func (d *decoder) egressText(key string, into *string) {
	switch kind := d.kind(); kind {
	case "string":
		*into = d.text()
		return
	case "null":
	default:
		field := d.field(key, "a string")
		if kind == "number" || kind == "bool" {
			field.Accepted = `a string: "` + field.Value + `"`
		}
		d.first(&d.any, "NetConf."+key, "string", field)
		switch key {
		case "name":
			d.first(&d.name, ".name", "string", field)
		case "cniVersion":
			d.first(&d.cniVer, ".cniVersion", "string", field)
		}
	}
	d.raw()
}

func (d *decoder) egressIPAM(into *EgressIPAM) {
	switch d.kind() {
	case "object":
		d.object(func(key string) {
			switch keyIndex(key, []string{"type", "dataDir"}) {
			case 0:
				d.ipamText("type", &into.Type)
			case 1:
				d.ipamText("dataDir", &into.DataDir)
			default:
				d.raw()
			}
		})
		return
	case "null":
	default:
		d.mismatch("NetConf.ipam", "types.IPAM", "ipam", "an object")
	}
	d.raw()
}

func (d *decoder) ipamText(key string, into *string) {
	switch d.kind() {
	case "string":
		*into = d.text()
		return
	case "null":
	default:
		d.mismatch("IPAM.ipam."+key, "string", "ipam."+key, "a string")
	}
	d.raw()
}

// On reports whether egress is switched on.
func (c *EgressConf) On() bool { return c.Enabled == "true" }

// LinkMTU is the MTU of the pair. Upstream takes any integer.
func (c *EgressConf) LinkMTU() (int, error) {
	mtu, err := strconv.Atoi(c.MTU)
	if err != nil {
		return 0, &Error{Kind: BadSettings, Err: wrap("mtu is no integer: ", err), Field: Field{
			Key: "mtu", Value: strconv.Quote(c.MTU), Accepted: `a string with an integer: "9001"`,
		}}
	}
	return mtu, nil
}
