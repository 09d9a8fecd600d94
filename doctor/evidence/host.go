package evidence

import "time"

// Packages is the software of the host that matters to pod networking.
type Packages struct {
	Systemd       *int              `json:"systemd"` // version
	Packages      []string          `json:"packages"`
	Units         map[string]string `json:"units"`      // active, inactive, failed
	LinkPolicy    string            `json:"linkPolicy"` // effective MACAddressPolicy: none, persistent
	ForeignRules  *bool             `json:"foreignRules"`
	ForeignRoutes *bool             `json:"foreignRoutes"` // systemd-networkd removes routes that it did not make
	Modules       []string          `json:"modules"`       // kernel modules that are missing
	BPFFS         *bool             `json:"bpffs"`         // /sys/fs/bpf is mounted
	SELinux       string            `json:"selinux"`
}

// CNI is the runtime's CNI directory and the plugins.
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
	OfImage    *bool     `json:"ofImage"` // byte for byte the file in the image of the daemon that runs
}

// Kubelet is kubelet's own configuration.
type Kubelet struct {
	Version string `json:"version"`
	MaxPods *int   `json:"maxPods"`
}

// Resources is the state of the host's resources.
type Resources struct {
	CPUs          *int     `json:"cpus"`
	Load1         *float64 `json:"load1"`
	MemoryFreeMiB *int     `json:"memoryFreeMiB"`
	Disks         []Disk   `json:"disks"`
	Throttled     []string `json:"throttled"` // processes whose CPU is throttled
	Denials       []string `json:"denials"`   // audit lines
}

// Disk is a file system, named by its mount point.
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
