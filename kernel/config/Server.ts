// The listen address, the hosts and origins of this facilitator, and the environment variables that hold the keys of
// callers and operators.
import { Context, Effect, Layer, Schema } from "effect"
import {
  integer,
  list,
  type MembersOf,
  membersOf,
  optionalText,
  origins,
  ranges,
  scalar,
  section,
  text
} from "./Setting.ts"
import { Settings } from "./Settings.ts"

export const serverSection = section("server", "The facilitator's listener.", {
  host: optionalText({ doc: "Address to bind. Absent: 127.0.0.1 without caller keys, 0.0.0.0 with them." }),
  port: integer({ default: 4022, min: 0, max: 65_535 }, "TCP port; 0 picks a free one."),
  instance: optionalText({ doc: "Name of this replica, facilitator_id in analytics. Absent: the host's name." }),
  trusted_proxies: ranges({
    doc: "Addresses or CIDR ranges of proxies whose X-Forwarded-For is trusted; a host name is refused."
  }),
  allowed_hosts: list(Schema.String, {
    default: [],
    doc:
      "Host headers that callers use in addition to this machine's: those of a proxy in front. " +
      "Challenges are issued and accepted only for these; a loopback listener answers only these."
  }),
  allowed_origins: origins({
    doc:
      "Origins of other web pages that may call this facilitator and read its answers (CORS), such as " +
      "https://shop.example; a loopback listener refuses all others."
  }),
  max_request_bytes: integer(
    { default: 262_144, min: 16_384, max: 8_388_608, unit: "bytes" },
    "Maximum size of a request body; a longer one is answered 413."
  ),
  points_per_second: integer(
    { default: 500, min: 0, max: 1_000_000 },
    "Cost of the requests of one key, or one address without a key, in a second, with bursts of twice that. " +
      "A point is about a millisecond of processor time; runtime/deploy/routes.md lists the routes. Payments have " +
      "their own limits, and this machine has none. 0 means no limit."
  )
})
export const pluginsSection = scalar(
  "plugins",
  list(Schema.String, { default: [], doc: "Ids of the enabled plugins." })
)
export const apiKeysEnvSection = scalar(
  "api_keys_env",
  text({ default: "FACILITATOR_API_KEYS", doc: "Environment variable with the callers' keys, comma-separated." })
)
export const operatorKeysEnvSection = scalar(
  "operator_keys_env",
  text({ default: "OPERATOR_API_KEYS", doc: "Environment variable with the operators' keys, comma-separated." })
)

interface ServerValues extends MembersOf<typeof serverSection> {
  readonly plugins: ReadonlyArray<string>
  readonly apiKeysEnv: string
  readonly operatorKeysEnv: string
}

export class Server extends Context.Service<Server, ServerValues>()("tollkeeper/config/Server") {
  static readonly layer = Layer.effect(
    Server,
    Effect.gen(function* () {
      const settings = yield* Settings
      const values = yield* settings.section(serverSection)
      return Server.of({
        ...membersOf(values),
        allowedHosts: values.allowed_hosts.map((host) => host.toLowerCase()),
        plugins: yield* settings.section(pluginsSection),
        apiKeysEnv: yield* settings.section(apiKeysEnvSection),
        operatorKeysEnv: yield* settings.section(operatorKeysEnvSection)
      })
    })
  )
}

/** The section that lists a profile's plugins, for the loader, which reads it before anything is built. */
