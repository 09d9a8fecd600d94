// Package agent is the process inside a simulated node: process 1 of a network,
// mount, process and host-name namespace. It starts programs there, makes pod
// namespaces, and opens files and connections for the process outside.
//
// It is the calling program itself, started again: [Maybe], called first in main
// (testenv.Main and testenv.Enter do it), turns such a process into an agent.
// [Start] and the methods of [Agent] are the other side. The two communicate over a socket
// pair, with one short connection per request, so requests run in parallel.
//
// A node ends with its agent: the kernel kills everything in a process namespace
// whose first process is gone, and the agent is killed when its starter's thread
// ends. Nothing here is safe for production use.
package agent
