// Package monitoring judges a node as the EKS node monitoring agent does
// (github.com/aws/eks-node-monitoring-agent, monitors/networking at 51af549). The agent is an
// EKS add-on and part of Auto Mode. What it finds becomes the Node's condition NetworkingReady; a
// fatal finding makes it False, and with node auto repair the node is replaced.
//
// [Agent.Check] is pure: its input is what the agent reads, as text or documents. testenv/node
// reads it on nodes of the test bed.
package monitoring
