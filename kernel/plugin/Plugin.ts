// A plugin is a plain value: id, summary, boot policy, needs, migrations, the settings that it declares and one Layer.
// Settings are known whether the plugin is enabled or not. It contributes everything else by calling a kernel registry
// while that Layer is built; the Layer's Scope removes it again. `define` makes the compiler check that `needs` equals
// the Layer's real requirements, and `catalogue` makes it check the order of a list of plugins. Nothing here runs: the
// Loader starts plugins.
import { Effect, type FileSystem, Layer, type Path } from "effect"
import type { Etag, HttpPlatform, HttpRouter } from "effect/http"
import type { Declaration } from "../config/NetworkKeys.ts"
import type { AnyContract, Contract, ServicesOf } from "../contract/Contract.ts"
import type { DatabaseSource } from "../database/DatabaseSource.ts"
import type { MigrationsFolder } from "../database/Migrations.ts"
import type { StartupBanner } from "../StartupBanner.ts"
import type { ListenAt } from "../http/ListenAt.ts"
import type { Crypto } from "../platform/Crypto.ts"
import type { FolderLock, Host } from "../platform/Host.ts"
import type { HttpCalls } from "../platform/HttpCalls.ts"
import type { Listeners } from "../platform/Listeners.ts"
import type { Outbound } from "../platform/Outbound.ts"
import type { Stdio } from "../platform/Stdio.ts"
import type { Packages, StripTypes } from "../platform/Packages.ts"
import type { PluginStates } from "./PluginStates.ts"
import type { RouteClaims } from "./Routes.ts"

export type Boot = "required" | "optional"

/** `folder`: the files of `migrations/<id>/` run before the Layer is built. */
export type Migrations = "folder" | "none"

export interface Plugin<out Id extends string, in Out, out E, out R, out Needs extends ReadonlyArray<AnyContract>> {
  /** Kebab-case, equal to the plugin's folder; logs, spans, metrics and the migration ledger use it. */
  readonly id: Id
  /** One line for people. */
  readonly summary: string
  /**
   * A failing `optional` plugin is reported degraded and the rest runs. Only a plugin that provides no service may be
   * optional.
   */
  readonly boot: Boot
  readonly needs: Needs
  readonly migrations: Migrations
  /** The plugin's sections of settings and keys of each network; absent: none. */
  readonly settings?: ReadonlyArray<Declaration>
  readonly layer: Layer.Layer<Out, E, R>
  /** Its module could not be loaded, so its settings are not known; its Layer fails. */
  readonly isMissing?: true
}

export type AnyPlugin = Plugin<string, never, any, any, ReadonlyArray<AnyContract>>

/**
 * Services that every plugin may use without declaring them: the router it mounts routes on and the ports of the
 * platform. A route handler that still requires a service is not ambient: services are taken while the Layer is built,
 * never per request.
 */
export type Ambient =
  | HttpRouter.HttpRouter
  | HttpPlatform.HttpPlatform
  | Etag.Generator
  | FileSystem.FileSystem
  | Path.Path
  | Crypto
  | Host
  | FolderLock
  | HttpCalls
  | Listeners
  | Outbound
  | Stdio
  | Packages
  | StripTypes
  | ListenAt
  | StartupBanner
  | PluginStates
  | RouteClaims
  | DatabaseSource
  | MigrationsFolder

type Undeclared<R, Needs extends ReadonlyArray<AnyContract>> = Exclude<R, Ambient | ServicesOf<Needs[number]>>

type Unused<R, Needs extends ReadonlyArray<AnyContract>> = {
  [K in keyof Needs]: [Extract<R, ServicesOf<Needs[K]>>] extends [never] ? Needs[K]["id" & keyof Needs[K]] : never
}[number]

/** Empty if declared and used needs agree; otherwise an impossible argument with the problem in its name. */
type Proof<R, Needs extends ReadonlyArray<AnyContract>> = [Undeclared<R, Needs>] extends [never]
  ? [Unused<R, Needs>] extends [never]
    ? []
    : [declaredButUnused: Unused<R, Needs>]
  : [usedButNotDeclared: Undeclared<R, Needs>]

interface Shape {
  readonly id: string
  readonly summary: string
  readonly boot: Boot
  readonly needs: ReadonlyArray<AnyContract>
  readonly migrations: Migrations
  readonly settings?: ReadonlyArray<Declaration>
  readonly layer: Layer.Layer<never, any, any>
}

type OutOf<P extends Shape> = Layer.Success<P["layer"]>

/**
 * Defines a plugin. A need that is used but undeclared, a need that is declared but unused, or an optional provider
 * does not compile.
 */
export const define = <const P extends Shape>(
  plugin: P,
  ..._: [OutOf<P>] extends [never]
    ? Proof<Layer.Services<P["layer"]>, P["needs"]>
    : P["boot"] extends "required"
      ? Proof<Layer.Services<P["layer"]>, P["needs"]>
      : [aProviderCannotBeOptional: OutOf<P>]
): Plugin<P["id"], OutOf<P>, Layer.Error<P["layer"]>, Layer.Services<P["layer"]>, P["needs"]> => plugin as any

/** The Layer of a module that is loaded when the plugin starts, for large and rarely enabled code. */
export const loaded = <Out, E, R>(
  module: () => Promise<{ readonly layer: Layer.Layer<Out, E, R> }>
): Layer.Layer<Out, E, R> => Layer.unwrap(Effect.map(Effect.promise(module), ({ layer }) => layer))

type Missing<Need, Have> =
  Need extends Contract<infer Id, infer Services>
    ? Id extends keyof Have
      ? [Services] extends [Have[Id]]
        ? never
        : ["does not provide its contract", Id]
      : ["missing or later", Id]
    : never

type Order<Ps, Have = {}> = Ps extends readonly [infer Head, ...infer Tail]
  ? Head extends Plugin<infer Id, infer Out, any, any, infer Needs>
    ? Missing<Needs[number], Have> | Order<Tail, Have & { [K in Id]: Out }>
    : never
  : never

/** A list of plugins in dependency order. A need that comes later, or that no plugin provides, does not compile. */
export const catalogue = <const Ps extends ReadonlyArray<AnyPlugin>>(
  ...plugins: Ps & ([Order<Ps>] extends [never] ? unknown : Order<Ps>)
): Ps => plugins
