package introspect

// ConfigRow is one setting of the daemon.
type ConfigRow struct {
	Name      string  `json:"name" null:"never"`      // environment variable
	Declared  *string `json:"declared"`               // value in the environment; null if not set
	Effective string  `json:"effective" null:"never"` // value that the daemon uses
	Source    string  `json:"source" null:"never"`    // origin of the value: environment, label, default, derived
	Problem   string  `json:"problem"`                // what is wrong with the setting; empty if nothing
	Support   string  `json:"support"`                // how this version handles the setting; empty if unknown
	Label     *string `json:"label,omitempty"`        // the Node's label for it, as written; omitted if there is none
}

// How a version handles a setting (daemon/config: Support).
const (
	SupportActs    = "yes"
	SupportLater   = "not yet" // accepted without effect, in versions that did not serve it
	SupportRefused = "refused" // switching it on is an error, in versions that did not serve it
	SupportNoOp    = "no-op"   // no version uses it any more
	SupportPassed  = "passed"  // read by components other than the daemon
)

// NodeConfig answers /v1/config.
type NodeConfig struct {
	APIVersion string      `json:"apiVersion"` // version of the document
	Kind       string      `json:"kind"`       // NodeConfig
	Items      []ConfigRow `json:"items"`      // in the order of the table of settings
}
