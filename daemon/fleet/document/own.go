package document

import (
	"time"

	"cnictl/daemon/api/introspect"
)

// Kinds of documents about settings and versions.
const (
	KindSettings        = "Settings"
	KindNodeSettingList = "NodeSettingList"
)

// Settings is what cnictl config view shows: the settings of the tool itself.
type Settings struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // Settings
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	File       string      `json:"file"`                    // path of the settings file; empty if there is none
	Items      []Setting   `json:"items"`                   // sorted by name
	Partial    bool        `json:"partial"`                 // something could not be read
	Errors     []NodeError `json:"errors"`                  // what could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // when they were read
}

// Setting is one setting of the tool.
type Setting struct {
	Name        string `json:"name" null:"never"`    // flag name, or keys. followed by an action of the TUI
	Value       string `json:"value" null:"never"`   // effective value; (set) for a credential
	Source      string `json:"source" null:"never"`  // origin of the value: flag, environment, file, default
	Environment string `json:"environment"`          // environment variable for the setting; empty if none
	Default     string `json:"default" null:"never"` // default value
}

// NodeSettingList is what cnictl node config shows: a daemon's settings.
type NodeSettingList struct {
	APIVersion string                 `json:"apiVersion" null:"never"` // version of the document
	Kind       string                 `json:"kind" null:"never"`       // NodeSettingList
	Metadata   ListMeta               `json:"metadata"`                // standard Kubernetes list metadata
	Node       string                 `json:"node" null:"never"`       // node name
	SampledAt  time.Time              `json:"sampledAt"`               // when the daemon was read
	Items      []introspect.ConfigRow `json:"items"`                   // as reported by the daemon
	Partial    bool                   `json:"partial"`                 // something could not be read
	Errors     []NodeError            `json:"errors"`                  // what could not be read
}

// Versions is what cnictl version shows.
type Versions struct {
	APIVersion string          `json:"apiVersion" null:"never"` // version of the document
	Kind       string          `json:"kind" null:"never"`       // Version
	Version    string          `json:"version" null:"never"`    // version of cnictl
	GoVersion  string          `json:"goVersion" null:"never"`  // Go version it was built with
	Platform   string          `json:"platform" null:"never"`   // such as linux/amd64
	Daemons    []DaemonVersion `json:"daemons"`                 // versions of the daemons, most nodes first; null if not requested
	Partial    bool            `json:"partial"`                 // something could not be read
	Errors     []NodeError     `json:"errors"`                  // what could not be read
	SampledAt  time.Time       `json:"sampledAt"`               // when they were read
}

// DaemonVersion counts the nodes whose daemon has a version.
type DaemonVersion struct {
	Version string `json:"version"` // in a cluster the tag of aws-node's image, otherwise the version reported by the daemon; empty if unknown
	Nodes   int    `json:"nodes"`   // number of nodes that run it
}
