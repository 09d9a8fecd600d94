package netconf

import "strconv"

const (
	// DefaultMTU is the MTU of pods if mtu is absent or unusable: the MTU of a VPC.
	DefaultMTU = 9001
	minMTU     = 576 // IPv4's minimum; upstream does not distinguish families
	maxMTU     = 9001

	// MultiNICAnnotation requests several interfaces if its value is MultiNICValue.
	MultiNICAnnotation = "k8s.amazonaws.com/nicConfig"
	MultiNICValue      = "multi-nic-attachment"

	// AnnotationCapability is the runtime capability through which containerd passes a
	// pod's annotations.
	AnnotationCapability = "io.kubernetes.cri.pod-annotations"
)

// NetConf is the configuration of one plugin run. Its name and the names of its keys
// appear in error texts, which are upstream's.
type NetConf struct {
	CNIVersion   string          `json:"cniVersion,omitempty"`
	Name         string          `json:"name,omitempty"`
	Type         string          `json:"type,omitempty"`
	Capabilities map[string]bool `json:"capabilities,omitempty"`

	VethPrefix         string `json:"vethPrefix"`         // of host links; absent means eni
	MTU                string `json:"mtu"`                // decimal
	PodSGEnforcingMode string `json:"podSGEnforcingMode"` // strict or standard; absent means strict
	PluginLogFile      string `json:"pluginLogFile"`      // path, stderr; empty means stderr
	PluginLogLevel     string `json:"pluginLogLevel"`     // debug, info, warn, error, fatal

	RuntimeConfig RuntimeConfig `json:"runtimeConfig,omitzero"` // supplied by the runtime
	RawPrevResult Raw           `json:"prevResult,omitempty"`   // supplied by the runtime
}

// RuntimeConfig is what the runtime supplies for declared capabilities.
type RuntimeConfig struct {
	PodAnnotations map[string]string `json:"io.kubernetes.cri.pod-annotations,omitempty"`
}

// defaults are the values of absent keys.
func defaults() NetConf {
	return NetConf{VethPrefix: "eni", MTU: strconv.Itoa(DefaultMTU), PodSGEnforcingMode: "strict"}
}

// PodMTU returns the MTU of the pod's links; ok is false if mtu is unusable and the
// default applies.
func (c *NetConf) PodMTU() (mtu int, ok bool) {
	mtu, err := strconv.Atoi(c.MTU)
	if err != nil || mtu < minMTU || mtu > maxMTU {
		return DefaultMTU, false
	}
	return mtu, true
}

// MultiNIC reports whether the pod requests several interfaces. value is the annotation as
// given, "" if none.
func (c *NetConf) MultiNIC() (wanted bool, value string) {
	value = c.RuntimeConfig.PodAnnotations[MultiNICAnnotation]
	return value == MultiNICValue, value
}

// Conflist is the file in /etc/cni/net.d. Other plugins' entries are kept unchanged.
type Conflist struct {
	CNIVersion   string   `json:"cniVersion"`
	CNIVersions  []string `json:"cniVersions,omitempty"`
	Name         string   `json:"name"`
	DisableCheck bool     `json:"disableCheck,omitempty"`
	Plugins      []Raw    `json:"plugins"`
}
