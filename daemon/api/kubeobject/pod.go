package kubeobject

import "time"

// PodStatus is the status of a pod.
type PodStatus struct {
	Phase      string      `json:"phase"`
	Reason     string      `json:"reason"`
	Message    string      `json:"message"`
	StartTime  *time.Time  `json:"startTime"`
	Conditions []Condition `json:"conditions"`
	PodIPs     []struct {
		IP string `json:"ip"`
	} `json:"podIPs"`
	ContainerStatuses     []ContainerStatus `json:"containerStatuses"`
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses"`
}

// ContainerStatus is the status of a container.
type ContainerStatus struct {
	Name         string         `json:"name"`
	Image        string         `json:"image"`
	Ready        bool           `json:"ready"`
	RestartCount int            `json:"restartCount"`
	State        ContainerState `json:"state"`
	LastState    ContainerState `json:"lastState"`
}

// ContainerState has at most one member.
type ContainerState struct {
	Running    *Run         `json:"running"`
	Waiting    *StateReason `json:"waiting"`
	Terminated *Run         `json:"terminated"`
}

// StateReason is why a container waits.
type StateReason struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Run is one run of a container. The members about its end are empty while it runs.
type Run struct {
	StateReason
	ExitCode   *int       `json:"exitCode"`
	StartedAt  *time.Time `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt"`
}

// Trouble returns why a pod does not run, or "" if it runs or the status gives no reason.
func (s *PodStatus) Trouble() StateReason {
	if s.Reason != "" {
		return StateReason{s.Reason, s.Message}
	}
	for _, list := range [][]ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for _, c := range list {
			switch {
			case c.State.Waiting != nil && c.State.Waiting.Reason != "PodInitializing":
				return *c.State.Waiting
			case c.State.Terminated != nil && c.State.Terminated.Reason != "Completed":
				return c.State.Terminated.StateReason
			}
		}
	}
	for _, c := range s.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return StateReason{c.Reason, c.Message}
		}
	}
	return StateReason{}
}
