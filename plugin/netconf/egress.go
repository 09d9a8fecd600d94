package netconf

import "strconv"

// EgressConf is the configuration of one run of egress-cni.
type EgressConf struct {
	CNIVersion     string
	Name           string
	Type           string
	MTU            string // decimal
	Enabled        string // "true"; anything else is off
	RandomizeSNAT  string // none, hashrandom; anything else means prng
	NodeIP         string // may be empty; its family is the family of the egress
	PluginLogFile  string
	PluginLogLevel string

	IPAM          EgressIPAM
	RawPrevResult Raw // supplied by the runtime
}

// EgressIPAM is the part of the address management's settings that egress-cni itself
// needs.
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

// ParseEgress parses the configuration; errors are as for [Parse].
func ParseEgress(stdin []byte) (EgressConf, error) {
	if err := checkSyntax(stdin); err != nil {
		return EgressConf{}, &Error{Kind: NotJSON, Err: wrap(textNotJSON, err)}
	}
	d, conf := decoder{cursor: cursor{in: stdin}}, EgressConf{}
	d.document(func(key string) { d.egressMember(&conf, key) })
	return conf, d.problem(conf.Name, "")
}

func (d *decoder) egressMember(conf *EgressConf, key string) {
	i := keyIndex(key, egressKeys[:])
	texts := conf.texts()
	switch {
	case i < 0:
		d.raw()
	case i < len(texts):
		d.textMember(egressKeys[i], texts[i])
	case egressKeys[i] == "prevResult":
		if kind := d.kind(); kind != "object" && kind != "null" {
			d.mismatch(&d.any, "prevResult", "object", "an object")
		}
		conf.RawPrevResult = d.raw()
	default:
		d.egressIPAM(&conf.IPAM)
	}
}

func (d *decoder) egressIPAM(into *EgressIPAM) {
	switch d.kind() {
	case "object":
		d.object(func(key string) {
			switch keyIndex(key, []string{"type", "dataDir"}) {
			case 0:
				d.textMember("ipam.type", &into.Type)
			case 1:
				d.textMember("ipam.dataDir", &into.DataDir)
			default:
				d.raw()
			}
		})
		return
	case "null":
	default:
		d.mismatch(&d.any, "ipam", "object", "an object")
	}
	d.raw()
}

// On reports whether egress is switched on.
func (c *EgressConf) On() bool { return c.Enabled == "true" }

// LinkMTU returns the MTU of the pair. Upstream accepts any integer.
func (c *EgressConf) LinkMTU() (int, error) {
	mtu, err := strconv.Atoi(c.MTU)
	if err != nil {
		return 0, &Error{Kind: BadSettings, Err: wrap("mtu is not an integer: ", err), Field: Field{
			Key: "mtu", Value: strconv.Quote(c.MTU), Accepted: `a string with an integer: "9001"`,
		}}
	}
	return mtu, nil
}
