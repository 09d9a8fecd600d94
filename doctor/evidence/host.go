package evidence

import "time"

// Packages is the host software that affects pod networking.
type Packages struct {
	Systemd       *int              `json:"systemd,omitzero"` // version
	Packages      []string          `json:"packages,omitzero"`
	Units         map[string]string `json:"units,omitzero"`      // active, inactive, failed
	LinkPolicy    string            `json:"linkPolicy,omitzero"` // effective MACAddressPolicy: none, persistent
	ForeignRules  *bool             `json:"foreignRules,omitzero"`
	ForeignRoutes *bool             `json:"foreignRoutes,omitzero"` // systemd-networkd removes routes that it did not create
	Modules       []string          `json:"modules,omitzero"`       // missing kernel modules
	BPFFS         *bool             `json:"bpffs,omitzero"`         // /sys/fs/bpf is mounted
	SELinux       string            `json:"selinux,omitzero"`
}

// CNI holds the runtime's CNI configuration files and plugins.
type CNI struct {
	Conf []CNIConf   `json:"conf,omitzero"` // sorted by file
	Bin  []CNIPlugin `json:"bin,omitzero"`
}

// CNIConf is one configuration file.
type CNIConf struct {
	File  string   `json:"file,omitzero" key:"true"`
	Types []string `json:"types,omitzero"` // of its plugins
	Valid bool     `json:"valid" default:"true"`
}

// CNIPlugin is one executable.
type CNIPlugin struct {
	Name       string    `json:"name,omitzero" key:"true"`
	ModifiedAt time.Time `json:"modifiedAt,omitzero"`
	Size       *int      `json:"size,omitzero"`
	Version    *string   `json:"version,omitzero"`
	OfImage    *bool     `json:"ofImage,omitzero"` // identical to the file in the image of the running daemon
}

// Kubelet is kubelet's own configuration.
type Kubelet struct {
	Version string `json:"version,omitzero"`
	MaxPods *int   `json:"maxPods,omitzero"`
}

// Resources is the load and free capacity of the host.
type Resources struct {
	CPUs          *int     `json:"cpus,omitzero"`
	Load1         *float64 `json:"load1,omitzero"`
	MemoryFreeMiB *int     `json:"memoryFreeMiB,omitzero"`
	Disks         []Disk   `json:"disks,omitzero"`
	Throttled     []string `json:"throttled,omitzero"` // processes whose CPU is throttled
	Denials       []string `json:"denials,omitzero"`   // audit lines
}

// Disk is a file system, identified by its mount point.
type Disk struct {
	Path              string   `json:"path,omitzero" key:"true"`
	UsedPercent       *float64 `json:"usedPercent,omitzero"`
	InodesUsedPercent *float64 `json:"inodesUsedPercent,omitzero"`
	ReadOnly          bool     `json:"readOnly,omitzero"`
}

// Listener is a listening socket: IP:PORT or a path.
type Listener struct {
	Address string `json:"address,omitzero" key:"true"`
	Process string `json:"process,omitzero"`
}
