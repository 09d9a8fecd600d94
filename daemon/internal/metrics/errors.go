package metrics

import "github.com/prometheus/client_golang/prometheus"

// errorCounts count internal errors, reconciliations and losses.
type errorCounts struct {
	ipamd      *prometheus.CounterVec
	reconciled *prometheus.CounterVec
	podENI     *prometheus.CounterVec
	lostENIs   prometheus.Counter
	lostIPs    prometheus.Counter
}

func newErrorCounts(r registrar) errorCounts {
	return errorCounts{
		ipamd:      r.counters("awscni_ipamd_error_count", "The number of errors encountered in ipamd", "fn"),
		reconciled: r.counters("awscni_reconcile_count", "The number of times ipamd reconciles on ENIs and IP addresses", "fn"),
		podENI:     r.counters("awscni_pod_eni_error_count", "The number of errors of pod ENI support", "fn"),
		lostENIs:   r.counter("awscni_force_removed_enis", "The number of ENIs force removed while they had assigned pods"),
		lostIPs:    r.counter("awscni_force_removed_ips", "The number of IPs force removed while they had assigned pods"),
	}
}

// Values of fn for InternalError.
const (
	FnWaitENIAttachedRetries  = "waitENIAttachedMaxRetryExceeded"
	FnIncreaseAllocENI        = "increaseIPPoolAllocENI"
	FnIncreaseAllocIPs        = "increaseIPPoolAllocIPAddressesFailed"
	FnIncreaseWaitENI         = "increaseIPPoolwaitENIAttachedFailed"
	FnIncreaseSetupENI        = "increaseIPPoolsetupENIFailed"
	FnIncreaseGetENIAddresses = "increaseIPPoolGetENIaddressesFailed"
	FnIncreaseGetENIPrefixes  = "increaseIPPoolGetENIprefixedFailed"
	FnAddSecondaryIPs         = "addENIsecondaryIPsToDataStoreFailed"
	FnAddIPv4Prefixes         = "addENIv4prefixesToDataStoreFailed"
	FnAddIPv6Prefixes         = "addENIv6prefixesToDataStoreFailed"
	FnDecrease                = "decreaseIPPool"
	FnDecreaseFreeENI         = "decreaseIPPoolFreeENIFailed"
	FnFreeENIDeleteRules      = "freeENIDeleteRulesFailed"
	FnReconcileGetENIs        = "reconcileFailedGetENIs"
	FnENIReconcileAdd         = "eniReconcileAdd" // also of Reconciled
	FnENIReconcileDel         = "eniReconcileDel" // also of Reconciled
	FnIPReconcileAdd          = "ipReconcileAdd"
	FnIPReconcileDel          = "ipReconcileDel"
	FnPrefixReconcileAdd      = "prefixReconcileAdd"
)

// InternalError counts an internal error.
func (e *errorCounts) InternalError(fn string) { e.ipamd.WithLabelValues(fn).Inc() }

// Further values of fn for Reconciled.
const (
	FnPoolReconcileAdd = "eniDataStorePoolReconcileAdd"
	FnPoolReconcileDel = "eniIPPoolReconcileDel"
)

// Reconciled counts a correction of the address book to match EC2.
func (e *errorCounts) Reconciled(fn string) { e.reconciled.WithLabelValues(fn).Inc() }

// Values of fn for PodENIError.
const (
	FnNodeInit                = "nodeInit" // also of Action
	FnTryEnableSecurityGroups = "tryEnableSecurityGroupsForPods"
)

// PodENIError counts an error of pod ENI support or of node initialisation.
func (e *errorCounts) PodENIError(fn string) { e.podENI.WithLabelValues(fn).Inc() }

// ForceRemovedENI counts an ENI that vanished while pods were using it, and those pods.
func (e *errorCounts) ForceRemovedENI(pods int) {
	e.lostENIs.Inc()
	e.ForceRemovedIPs(pods)
}

// ForceRemovedIPs counts addresses that vanished while pods were using them.
func (e *errorCounts) ForceRemovedIPs(pods int) { e.lostIPs.Add(float64(max(pods, 0))) }
