package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Settings determine a conflist. The texts go into the template unescaped, so a value with
// a quote in it makes a conflist that Conflist refuses.
type Settings struct {
	VethPrefix         string // AWS_VPC_K8S_CNI_VETHPREFIX
	MTU                string // POD_MTU, else AWS_VPC_ENI_MTU; bytes
	PodSGEnforcingMode string // POD_SECURITY_GROUP_ENFORCING_MODE
	PluginLogFile      string // AWS_VPC_K8S_PLUGIN_LOG_FILE
	PluginLogLevel     string // AWS_VPC_K8S_PLUGIN_LOG_LEVEL
	RandomizeSNAT      string // AWS_VPC_K8S_CNI_RANDOMIZESNAT

	Egress Egress

	Bandwidth    bool // ENABLE_BANDWIDTH_PLUGIN: chain the bandwidth plugin
	DisablePodV6 bool // DISABLE_POD_V6: chain the tuning plugin

	// OmitEgress leaves out egress-cni if it is not enabled. It may be set if
	// Egress.DataDir has no reservation, because then no DEL needs the plugin.
	OmitEgress bool

	// CNIVersions are offered to runtimes in addition to the template's cniVersion. Those
	// built on containernetworking/cni 1.2.0 or later take the highest that they support,
	// others ignore the key. If empty, the key is omitted, as in upstream.
	CNIVersions []string
}

// Egress holds the settings of egress-cni, which gives pods a way out in the address family
// that they lack.
type Egress struct {
	Enabled bool
	LogFile string       // of the plugin
	Subnet  netip.Prefix // addresses within the node
	Route   netip.Prefix // destinations reached this way
	DataDir string       // of host-local
	NodeIP  netip.Addr   // of the node; zero: unknown
}

// Defaults returns the settings of a node with no variable set. ipv6 is the family of the
// cluster's pods.
func Defaults(ipv6 bool) Settings {
	s := Settings{
		VethPrefix: "eni", MTU: "9001", PodSGEnforcingMode: "strict",
		PluginLogFile: "/var/log/aws-routed-eni/plugin.log", PluginLogLevel: "Debug",
		RandomizeSNAT: "prng",
		Egress: Egress{
			LogFile: "/var/log/aws-routed-eni/egress-v6-plugin.log",
			Subnet:  netip.MustParsePrefix("fd00::ac:00/118"), Route: netip.MustParsePrefix("::/0"),
			DataDir: "/run/cni/v4pd/egress-v6-ipam",
		},
	}
	if ipv6 {
		s.Egress = Egress{
			Enabled: true,
			LogFile: "/var/log/aws-routed-eni/egress-v4-plugin.log",
			Subnet:  netip.MustParsePrefix("169.254.172.0/22"), Route: netip.MustParsePrefix("0.0.0.0/0"),
			DataDir: "/run/cni/v6pd/egress-v4-ipam",
		}
	}
	return s
}

// AllCNIVersions returns the value of Settings.CNIVersions when versions are offered.
func AllCNIVersions() []string { return []string{"0.4.0", "1.0.0", "1.1.0"} }

// subnetText prints the range as upstream does, with two digits in its last group, because
// an installed conflist is compared with it.
func subnetText(p netip.Prefix) string {
	if p == netip.MustParsePrefix("fd00::ac:00/118") {
		return "fd00::ac:00/118"
	}
	return p.String()
}

// substitutions pairs each placeholder with its value. No placeholder contains another, so
// their order does not matter.
func (s *Settings) substitutions() []string {
	node := ""
	if s.Egress.NodeIP.IsValid() {
		node = s.Egress.NodeIP.String()
	}
	return []string{
		"__VETHPREFIX__", s.VethPrefix,
		"__MTU__", s.MTU,
		"__PODSGENFORCINGMODE__", s.PodSGEnforcingMode,
		"__PLUGINLOGFILE__", s.PluginLogFile,
		"__PLUGINLOGLEVEL__", s.PluginLogLevel,
		"__EGRESSPLUGINLOGFILE__", s.Egress.LogFile,
		"__EGRESSPLUGINENABLED__", strconv.FormatBool(s.Egress.Enabled),
		"__EGRESSPLUGINIPAMSUBNET__", subnetText(s.Egress.Subnet),
		"__EGRESSPLUGINIPAMDST__", s.Egress.Route.String(),
		"__EGRESSPLUGINIPAMDATADIR__", s.Egress.DataDir,
		"__RANDOMIZESNAT__", s.RandomizeSNAT,
		"__NODEIP__", node,
	}
}

// Conflist renders a template. It is pure; a template without placeholders, and with
// nothing to chain, is returned unchanged.
func Conflist(template string, s Settings) ([]byte, error) {
	text := []byte(strings.NewReplacer(s.substitutions()...).Replace(template))
	if !json.Valid(text) {
		return nil, fmt.Errorf("%s is not a valid json object, error: %w", text, syntaxError(text))
	}
	var chained []string
	if s.Bandwidth {
		chained = append(chained, bandwidthPlugin)
	}
	if s.DisablePodV6 {
		chained = append(chained, tuningPlugin)
	}
	var edits []func(*document) error
	if s.OmitEgress {
		edits = append(edits, func(d *document) error { d.omitEgress(); return nil })
	}
	if len(chained) > 0 {
		edits = append(edits, func(d *document) error { d.chain(chained); return nil })
	}
	if len(s.CNIVersions) > 0 {
		edits = append(edits, func(d *document) error { return d.offer(s.CNIVersions) })
	}
	for _, edit := range edits { // each moves the text after it, so it is parsed again
		d, err := parse(text)
		if err == nil {
			err = edit(d)
		}
		if err != nil {
			return nil, fmt.Errorf("change conflist: %w", err)
		}
		text = d.text
	}
	return text, nil
}

func syntaxError(text []byte) error {
	var raw json.RawMessage
	return json.Unmarshal(text, &raw)
}

// span is a part of a text, from its first byte to the byte after its last.
type span struct{ from, to int }

// document records the positions of things in a conflist's text.
type document struct {
	text     []byte
	version  span // value of cniVersion, zero if there is none
	versions span // value of cniVersions, zero if there is none
	opening  int  // after the first brace
	list     span // value of plugins
	plugins  []plugin
}

type plugin struct {
	span
	Type    string `json:"type"`
	Enabled any    `json:"enabled"` // of egress-cni, a string
}

// parse locates the parts of valid JSON.
func parse(text []byte) (*document, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the template is not a JSON object")
	}
	d := &document{text: text, opening: int(dec.InputOffset())}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		if key == "plugins" {
			if err := d.readPlugins(dec); err != nil {
				return nil, err
			}
			continue
		}
		value, err := next(dec)
		if err != nil {
			return nil, err
		}
		switch key {
		case "cniVersion":
			d.version = value
		case "cniVersions":
			d.versions = value
		}
	}
	if d.list == (span{}) {
		return nil, errors.New(`the template has no list "plugins"`)
	}
	return d, nil
}

// next reads a value and returns its position.
func next(dec *json.Decoder) (span, error) {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return span{}, err
	}
	end := int(dec.InputOffset())
	return span{end - len(raw), end}, nil
}

func (d *document) readPlugins(dec *json.Decoder) error {
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return errors.New(`"plugins" of the template is not a list`)
	}
	d.plugins = nil
	d.list.from = int(dec.InputOffset()) - 1
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		end := int(dec.InputOffset())
		p := plugin{span: span{end - len(raw), end}}
		if err := json.Unmarshal(raw, &p); err != nil {
			return fmt.Errorf("plugin %d of the template: %w", len(d.plugins), err)
		}
		d.plugins = append(d.plugins, p)
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	d.list.to = int(dec.InputOffset())
	return nil
}

// chain adds plugins after the last one, indented like the first.
func (d *document) chain(added []string) {
	indent, at := "    ", d.list.from+1
	var b strings.Builder
	if n := len(d.plugins); n > 0 {
		indent, at = indentOf(d.text, d.plugins[0].from), d.plugins[n-1].to
	}
	for i, p := range added {
		if i > 0 || len(d.plugins) > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n" + indent + strings.ReplaceAll(p, "\n", "\n"+indent))
	}
	d.splice(span{at, at}, b.String())
}

// indentOf returns the white space before an offset, if nothing else precedes it on its
// line.
func indentOf(text []byte, offset int) string {
	line := text[bytes.LastIndexByte(text[:offset], '\n')+1 : offset]
	if len(bytes.TrimLeft(line, " \t")) == 0 {
		return string(line)
	}
	return "    "
}

// omitEgress cuts out egress-cni if it is not enabled and other plugins remain.
func (d *document) omitEgress() {
	for i := len(d.plugins) - 1; i >= 0; i-- {
		p := d.plugins[i]
		if p.Type != "egress-cni" || p.Enabled == "true" || len(d.plugins) == 1 {
			continue
		}
		cut := p.span
		if i+1 < len(d.plugins) {
			cut.to = d.plugins[i+1].from
		} else {
			cut.from = d.plugins[i-1].to
		}
		d.splice(cut, "")
		d.plugins = append(d.plugins[:i:i], d.plugins[i+1:]...)
	}
}

// offer sets cniVersions.
func (d *document) offer(versions []string) error {
	list, err := json.Marshal(versions)
	if err != nil {
		return err
	}
	switch {
	case d.versions != (span{}):
		d.splice(d.versions, string(list))
	case d.version != (span{}):
		sep := ", "
		if indent, alone := indentOfKey(d.text, d.version.from); alone {
			sep = ",\n" + indent
		}
		d.splice(span{d.version.to, d.version.to}, sep+`"cniVersions": `+string(list))
	default: // at least one other key exists: plugins
		d.splice(span{d.opening, d.opening}, `"cniVersions": `+string(list)+`, `)
	}
	return nil
}

// indentOfKey returns the white space before the key of a value, and whether the key comes
// first on its line.
func indentOfKey(text []byte, value int) (indent string, alone bool) {
	line := text[bytes.LastIndexByte(text[:value], '\n')+1 : value]
	rest := bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(rest)]), len(line) < value && len(rest) > 0 && rest[0] == '"'
}

// splice changes a part of the text. Spans after it are invalid from then on.
func (d *document) splice(at span, with string) {
	out := make([]byte, 0, len(d.text)+len(with))
	out = append(out, d.text[:at.from]...)
	out = append(out, with...)
	d.text = append(out, d.text[at.to:]...)
}
