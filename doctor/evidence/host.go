package evidence

import "time"

// Packages is the host software that affects pod networking.
type Packages struct {
	Systemd       *int              `json:"systemd"` // version
	Packages      []string          `json:"packages"`
	Units         map[string]string `json:"units"`      // active, inactive, failed
	LinkPolicy    string            `json:"linkPolicy"` // effective MACAddressPolicy: none, persistent
	ForeignRules  *bool             `json:"foreignRules"`
	ForeignRoutes *bool             `json:"foreignRoutes"` // systemd-networkd removes routes that it did not create
	Modules       []string          `json:"modules"`       // missing kernel modules
	BPFFS         *bool             `json:"bpffs"`         // /sys/fs/bpf is mounted
	SELinux       string            `json:"selinux"`
}

// CNI holds the runtime's CNI configuration files and plugins.
type CNI struct {
	Conf []CNIConf   `json:"conf"` // sorted by file
	Bin  []CNIPlugin `json:"bin"`
}

// CNIConf is one configuration file.
type CNIConf struct {
	File  string   `json:"file" key:"true"`
	Types []string `json:"types"` // of its plugins
	Valid bool     `json:"valid" default:"true"`
}

// CNIPlugin is one executable.
type CNIPlugin struct {
	Name       string    `json:"name" key:"true"`
	ModifiedAt time.Time `json:"modifiedAt,omitzero"`
	Size       *int      `json:"size"`
	Version    *string   `json:"version"`
	OfImage    *bool     `json:"ofImage"` // identical to the file in the image of the running daemon
}

// Kubelet is kubelet's own configuration.
type Kubelet struct {
	Version string `json:"version"`
	MaxPods *int   `json:"maxPods"`
}

// Resources is the load and free capacity of the host.
type Resources struct {
	CPUs          *int     `json:"cpus"`
	Load1         *float64 `json:"load1"`
	MemoryFreeMiB *int     `json:"memoryFreeMiB"`
	Disks         []Disk   `json:"disks"`
	Throttled     []string `json:"throttled"` // processes whose CPU is throttled
	Denials       []string `json:"denials"`   // audit lines
}

// Disk is a file system, identified by its mount point.
type Disk struct {
	Path              string   `json:"path" key:"true"`
	UsedPercent       *float64 `json:"usedPercent"`
	InodesUsedPercent *float64 `json:"inodesUsedPercent"`
	ReadOnly          bool     `json:"readOnly"`
}

// Listener is a listening socket: IP:PORT or a path.
type Listener struct {
	Address string `json:"address" key:"true"`
	Process string `json:"process"`
}
