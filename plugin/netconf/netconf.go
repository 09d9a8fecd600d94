package netconf

import "strconv"

const (
	// DefaultMTU is the MTU of pods when mtu is absent or unusable: that of a VPC.
	DefaultMTU = 9001
	minMTU     = 576 // IPv4's minimum; upstream does not distinguish families
	maxMTU     = 9001

	// MultiNICAnnotation asks for several interfaces when it has the value
	// MultiNICValue.
	MultiNICAnnotation = "k8s.amazonaws.com/nicConfig"
	MultiNICValue      = "multi-nic-attachment"

	// AnnotationCapability is the runtime capability by which containerd passes the
	// annotations of a pod.
	AnnotationCapability = "io.kubernetes.cri.pod-annotations"
)

// NetConf is the configuration of one plugin run. Its name and the names of its
// keys are part of the error texts, which are those of upstream.
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

// PodMTU is the MTU of the pod's links; ok is false when mtu is not usable and the
// default is used.
func (c *NetConf) PodMTU() (mtu int, ok bool) {
	mtu, err := strconv.Atoi(c.MTU)
	if err != nil || mtu < minMTU || mtu > maxMTU {
		return DefaultMTU, false
	}
	return mtu, true
}

// MultiNIC reports whether the pod asks for several interfaces. value is the
// annotation as given, "" when there is none.
func (c *NetConf) MultiNIC() (wanted bool, value string) {
	value = c.RuntimeConfig.PodAnnotations[MultiNICAnnotation]
	return value == MultiNICValue, value
}

// Conflist is the file in /etc/cni/net.d. Plugins other than ours are kept as they
// are.
type Conflist struct {
	CNIVersion   string   `json:"cniVersion"`
	CNIVersions  []string `json:"cniVersions,omitempty"`
	Name         string   `json:"name"`
	DisableCheck bool     `json:"disableCheck,omitempty"`
	Plugins      []Raw    `json:"plugins"`
}
