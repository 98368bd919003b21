// The HTTP transports and the health routes on one port. The port opens once every plugin has started.
import { Effect } from "effect"
import type { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { ListenAt } from "../../../kernel/http/ListenAt.ts"
import { Config } from "../Config.ts"
import { AdmissionControl } from "./AdmissionControl.ts"
import { Calls } from "./Calls.ts"
import { addHealthRoutes } from "./healthRoutes.ts"
import { Sessions } from "./Sessions.ts"
import { Stateless } from "./Stateless.ts"
import { addSseRoutes } from "./sseRoutes.ts"
import { addStreamableRoutes } from "./streamableRoutes.ts"

export const serveHttp = Effect.fnUntraced(function* (before: Effect.Effect<void, SettingsRefused>) {
  const { http } = yield* Config
  const { host } = yield* AdmissionControl
  const { stopped } = yield* Calls
  const { closeAll } = yield* Sessions
  const { close } = yield* Stateless
  yield* addStreamableRoutes
  yield* addSseRoutes
  yield* addHealthRoutes
  yield* (yield* ListenAt).choose({
    at: { host, port: http.port },
    allowedOrigins: http.allowedOrigins,
    begins: before,
    // Open calls are answered with their result or the request to repeat them. Idle streams are closed, since they
    // would never end otherwise.
    closing: Effect.andThen(stopped, Effect.andThen(closeAll, close))
  })
})
