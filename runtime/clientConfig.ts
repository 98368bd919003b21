// Configuration that a client needs to reach a tool server, in the client's format: `mcpServers` (most clients), VS
// Code's `mcp.json`, Codex's `config.toml`, and the `server.json` of the official MCP registry, which lists servers at
// a public address. A secret is named by its variable, its value is never printed. Pure.

export const clients = ["any", "vscode", "codex", "registry"] as const

export type ClientForm = (typeof clients)[number]

/** How a client reaches the server. */
export type Reached =
  | {
      readonly transport: "stdio"
      readonly command: string
      readonly args: ReadonlyArray<string>
      readonly secrets: ReadonlyArray<string>
      /** Other variables, with their values: paths of secret files. */
      readonly environment: Readonly<Record<string, string>>
    }
  | {
      readonly transport: "http"
      /** Without a path. */
      readonly origin: string
      readonly asksForKey: boolean
    }

/** The variable with the client's key. */
const keyVariable = "TOOLS_API_KEY"

const fromEach = (names: ReadonlyArray<string>, valueOf: (name: string) => string): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, valueOf(name)]))

const unlessEmpty = (key: string, table: Readonly<Record<string, string>>) =>
  Object.keys(table).length === 0 ? {} : { [key]: table }

const forAny = (reached: Reached): unknown => {
  if (reached.transport === "http") {
    const headers = reached.asksForKey ? { Authorization: `Bearer \${${keyVariable}}` } : {}
    const server = { type: "streamable-http", url: `${reached.origin}/mcp`, ...unlessEmpty("headers", headers) }
    return { mcpServers: { tollkeeper: server } }
  }
  const { args, command, environment, secrets } = reached
  const env = { ...fromEach(secrets, (name) => `\${${name}}`), ...environment }
  return { mcpServers: { tollkeeper: { command, args, ...unlessEmpty("env", env) } } }
}

/** VS Code asks its user for a secret once, and stores it. */
const forVsCode = (reached: Reached): unknown => {
  const input = (name: string) => ({ type: "promptString", id: name, description: name, password: true })
  const inputsOf = (names: ReadonlyArray<string>) => (names.length === 0 ? {} : { inputs: names.map(input) })
  if (reached.transport === "http") {
    const headers = reached.asksForKey ? { Authorization: `Bearer \${input:${keyVariable}}` } : {}
    const server = { type: "http", url: `${reached.origin}/mcp`, ...unlessEmpty("headers", headers) }
    return { ...inputsOf(reached.asksForKey ? [keyVariable] : []), servers: { tollkeeper: server } }
  }
  const { args, command, environment, secrets } = reached
  const env = { ...fromEach(secrets, (name) => `\${input:${name}}`), ...environment }
  const server = { type: "stdio", command, args, ...unlessEmpty("env", env) }
  return { ...inputsOf(secrets), servers: { tollkeeper: server } }
}

/** TOML; strings and lists of strings have JSON's syntax. */
const forCodex = (reached: Reached): string => {
  const entries: ReadonlyArray<readonly [string, unknown]> =
    reached.transport === "http"
      ? [
          ["url", `${reached.origin}/mcp`],
          ...(reached.asksForKey ? [["bearer_token_env_var", keyVariable] as const] : [])
        ]
      : [
          ["command", reached.command],
          ["args", reached.args],
          ...(reached.secrets.length === 0 ? [] : [["env_vars", reached.secrets] as const]),
          ...Object.entries(reached.environment).map(([name, value]) => [`env.${name}`, value] as const)
        ]
  return ["[mcp_servers.tollkeeper]", ...entries.map(([key, value]) => `${key} = ${JSON.stringify(value)}`)].join("\n")
}

/** The registry's entry; its name is the public host's in reverse, which the publisher has to own. */
const forRegistry = (host: string, asksForKey: boolean, version: string): unknown => {
  const key = { description: "The key that the operator gave to this agent", isRequired: true, isSecret: true }
  const header = { name: "Authorization", value: "Bearer {key}", variables: { key } }
  const headers = asksForKey ? { headers: [header] } : {}
  return {
    $schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    name: `${host.split(".").reverse().join(".")}/tollkeeper`,
    title: "Tollkeeper",
    description: "Finds paid x402 resources for agents, and pays for them if its operator allows it.",
    version,
    remotes: [
      { type: "streamable-http", url: `https://${host}/mcp`, ...headers },
      { type: "sse", url: `https://${host}/sse`, ...headers }
    ]
  }
}

/** The text for a client; undefined for the registry if the server has no public address. */
export const clientConfig = (form: ClientForm, reached: Reached, version: string): string | undefined => {
  if (form === "codex") return forCodex(reached)
  if (form === "any") return JSON.stringify(forAny(reached), null, 2)
  if (form === "vscode") return JSON.stringify(forVsCode(reached), null, 2)
  const host = reached.transport === "http" && reached.origin.startsWith("https://") ? new URL(reached.origin).host : ""
  return host === "" || reached.transport !== "http"
    ? undefined
    : JSON.stringify(forRegistry(host, reached.asksForKey, version), null, 2)
}
