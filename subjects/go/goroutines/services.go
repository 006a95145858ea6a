package main

import "sync/atomic"

const (
	loggers          = "logger"
	frameworkLoggers = "framework logger"
	needed           = "needed"
	managers         = "manager"
)

// counts are of the starts and stops of services, each of which runs in a goroutine.
type counts struct {
	starts, stops atomic.Uint64
}

type logger interface {
	log(line string)
	lines() uint64
}

// counted is a service that counts and does nothing else.
type counted struct {
	counts *counts
}

func (c *counted) start() { c.counts.starts.Add(1) }
func (c *counted) stop()  { c.counts.stops.Add(1) }

// nullLogger counts lines: the works measure no output.
type nullLogger struct {
	counted
	level  string
	logged atomic.Uint64
}

func (n *nullLogger) log(string)    { n.logged.Add(1) }
func (n *nullLogger) lines() uint64 { return n.logged.Load() }

// loggerFactory makes a logger for each service that lacks one, offered to that service only.
type loggerFactory struct {
	counted
	registry *registry
}

func (f *loggerFactory) start() {
	f.counted.start()
	f.registry.MakeOnRequest(loggers, func(requester id, of properties) spec {
		level, _ := of["level"].(string)
		return spec{
			properties: properties{"owner": requester, "level": level},
			provides:   loggers,
			only:       requester,
			made:       &nullLogger{counted: counted{f.counts}, level: level},
		}
	})
}

func insertFactory(registry *registry, counts *counts) {
	registry.Insert(spec{requires: []string{frameworkLoggers}, made: &loggerFactory{counted{counts}, registry}})
	registry.Insert(spec{provides: frameworkLoggers, made: &counted{counts}})
}

// one of many services: the last one to start ends the application.
type one struct {
	registry   *registry
	counts     *counts
	count      uint64
	properties properties
	logger     logger
}

func (o *one) inject(_ string, _ id, instance any) { o.logger = instance.(logger) }

func (o *one) start() {
	if o.logger == nil || o.properties["iteration"].(uint64) >= o.count {
		panic("a service was started without what it requires")
	}
	if o.counts.starts.Add(1) == o.count {
		o.registry.Quit()
	}
}

func (o *one) stop() { o.counts.stops.Add(1) }

// start has many services, each of which requires a logger of its own.
func start(options options) outcome {
	registry := newRegistry()
	var ofMany, ofLoggers counts
	insertFactory(registry, &ofLoggers)
	for i := range options.count {
		own := properties{"iteration": i, "level": "error"}
		spec := spec{properties: own, requires: []string{loggers}}
		if options.constructor {
			spec.make = func(own properties, arguments []any) service {
				return &one{registry, &ofMany, options.count, own, arguments[0].(logger)}
			}
		} else {
			spec.made = &one{registry, &ofMany, options.count, own, nil}
		}
		registry.Insert(spec)
	}
	registry.Wait()
	starts := ofMany.starts.Load() + ofLoggers.starts.Load()
	stops := ofMany.stops.Load() + ofLoggers.stops.Load()
	return outcome{checksum: starts + 3*stops}
}

type serviceB struct {
	counted
	logger logger
}

func (b *serviceB) inject(_ string, _ id, instance any) { b.logger = instance.(logger) }

func (b *serviceB) start() {
	b.logger.log("start")
	b.counted.start()
}

func (b *serviceB) stop() {
	b.logger.log("stop")
	b.counted.stop()
}

// manager is what orders services to stop and to start.
type manager interface {
	Stop(id id)
	Start(id id)
	Quit()
}

// managing offers the registry to those that require the manager.
type managing struct {
	*registry
}

func (managing) start() {}
func (managing) stop()  {}

// serviceA requires B, and has the manager stop it and start it again.
type serviceA struct {
	counts  *counts
	cycles  uint64
	logger  logger
	manager manager
	needed  id
}

func (a *serviceA) inject(name string, provider id, instance any) {
	switch name {
	case needed:
		a.needed = provider
	case managers:
		a.manager = instance.(manager)
	default:
		a.logger = instance.(logger)
	}
}

func (a *serviceA) start() {
	a.logger.log("start")
	if a.counts.starts.Add(1) <= a.cycles {
		a.manager.Stop(a.needed)
	} else {
		a.manager.Quit()
	}
}

func (a *serviceA) stop() {
	a.logger.log("stop")
	if a.counts.stops.Add(1) <= a.cycles {
		a.manager.Start(a.needed)
	}
}

// startStop has B stopped, so that A stops first, and started, so that A starts again. Both require a logger.
func startStop(options options) outcome {
	registry := newRegistry()
	var ofA, ofB, ofLoggers counts
	insertFactory(registry, &ofLoggers)
	a := &serviceA{counts: &ofA, cycles: options.count}
	b := &serviceB{counted: counted{&ofB}}
	registry.Insert(spec{provides: managers, made: managing{registry}})
	registry.Insert(spec{requires: []string{loggers}, provides: needed, made: b})
	registry.Insert(spec{requires: []string{loggers, needed, managers}, made: a})
	registry.Wait()
	steps := ofA.starts.Load() + 3*ofB.starts.Load() + 5*ofA.stops.Load() + 7*ofB.stops.Load()
	return outcome{checksum: steps + 11*a.logger.lines() + 13*b.logger.lines()}
}
