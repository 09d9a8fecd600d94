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
	Metadata   ListMeta    `json:"metadata"`                // as lists of Kubernetes have
	File       string      `json:"file"`                    // where settings are read from; empty: nowhere
	Items      []Setting   `json:"items"`                   // by name
	Partial    bool        `json:"partial"`                 // something could not be read
	Errors     []NodeError `json:"errors"`                  // what could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // when they were read
}

// Setting is one setting of the tool.
type Setting struct {
	Name        string `json:"name" null:"never"`    // the flag, or keys. and an action of the screens
	Value       string `json:"value" null:"never"`   // in effect; (set) of a credential
	Source      string `json:"source" null:"never"`  // flag, environment, file, default
	Environment string `json:"environment"`          // the variable that sets it; empty: none does
	Default     string `json:"default" null:"never"` // without any setting
}

// NodeSettingList is what cnictl node config shows: a daemon's settings.
type NodeSettingList struct {
	APIVersion string                 `json:"apiVersion" null:"never"` // version of the document
	Kind       string                 `json:"kind" null:"never"`       // NodeSettingList
	Metadata   ListMeta               `json:"metadata"`                // as lists of Kubernetes have
	Node       string                 `json:"node" null:"never"`       // whose daemon
	SampledAt  time.Time              `json:"sampledAt"`               // when it was asked
	Items      []introspect.ConfigRow `json:"items"`                   // as the daemon has them
	Partial    bool                   `json:"partial"`                 // something could not be read
	Errors     []NodeError            `json:"errors"`                  // what could not be read
}

// Versions is what cnictl version shows.
type Versions struct {
	APIVersion string          `json:"apiVersion" null:"never"` // version of the document
	Kind       string          `json:"kind" null:"never"`       // Version
	Version    string          `json:"version" null:"never"`    // of the tool
	GoVersion  string          `json:"goVersion" null:"never"`  // it was built with
	Platform   string          `json:"platform" null:"never"`   // linux/amd64
	Daemons    []DaemonVersion `json:"daemons"`                 // most nodes first; null: not asked
	Partial    bool            `json:"partial"`                 // something could not be read
	Errors     []NodeError     `json:"errors"`                  // what could not be read
	SampledAt  time.Time       `json:"sampledAt"`               // when they were read
}

// DaemonVersion counts the nodes whose daemon has a version.
type DaemonVersion struct {
	Version string `json:"version"` // in a cluster the tag of aws-node's image, else as the daemon reports; empty: unknown
	Nodes   int    `json:"nodes"`   // that run it
}
