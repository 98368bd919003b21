// Pins the base images of the Dockerfile and the Compose file to the digests that their tags have now, or renews them:
//
//   node runtime/deploy/pinImages.mjs           prints each image with its digest, and changes nothing
//   node runtime/deploy/pinImages.mjs --write   writes `image:tag@sha256:…` in place of `image:tag` or an older digest
//   node runtime/deploy/pinImages.mjs --list    prints the files' images, offline; status 1 unless each is pinned
//
// `--folder DIR` sets the folder of the two files. It asks Docker Hub without credentials, or a mirror: REGISTRY_URL,
// and REGISTRY_AUTH_URL for its tokens. It gets all digests before it writes anything. Build and test before you commit
// the changes. A pinned image gets no security updates until it is renewed.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: {
    write: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    folder: { type: "string", default: fileURLToPath(new URL(".", import.meta.url)) }
  }
})
const registry = process.env.REGISTRY_URL ?? "https://registry-1.docker.io"
const tokens = process.env.REGISTRY_AUTH_URL ?? "https://auth.docker.io"
const timeoutMillis = 20_000
/** `ARG …_IMAGE=name:tag[@digest]` and `image: name:tag[@digest]`, except names of other registries. */
const used = /(?<=^ARG \w+_IMAGE=|^ {4}image: )(?!tollkeeper:)([a-z0-9_./-]+):([\w.-]+)(?:@(sha256:[0-9a-f]{64}))?$/gm
const kinds = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json"
]

/** Sends a request and returns its answer; on failure the program ends with one sentence. */
const ask = async (url, options = {}) => {
  const answer = await fetch(url, { ...options, signal: AbortSignal.timeout(timeoutMillis) }).catch((error) => {
    throw new Error(`${new URL(url).host} does not answer (${error.cause?.code ?? error.name})`)
  })
  if (!answer.ok) throw new Error(`${new URL(url).host} answers ${answer.status}`)
  return answer
}

/** The digest of a tag, for every architecture. */
const digestOf = async (name, tag) => {
  const repository = name.includes("/") ? name : `library/${name}`
  const scope = `repository:${repository}:pull`
  const { token } = await (await ask(`${tokens}/token?service=registry.docker.io&scope=${scope}`)).json()
  const answer = await ask(`${registry}/v2/${repository}/manifests/${tag}`, {
    method: "HEAD",
    headers: { authorization: `Bearer ${token}`, accept: kinds.join(", ") }
  })
  const digest = answer.headers.get("docker-content-digest")
  if (!/^sha256:[0-9a-f]{64}$/.test(digest ?? "")) throw new Error("the registry names no digest")
  return digest
}

const files = ["Dockerfile", "compose.yaml"].map((name) => {
  const file = join(values.folder, name)
  const text = readFileSync(file, "utf8")
  return { file, text, images: [...text.matchAll(used)] }
})

const list = () => {
  const images = files.flatMap(({ images }) => images)
  for (const [, name, tag, digest] of images) console.log(`${name}:${tag}  ${digest ?? "not pinned"}`)
  return images.every(([, , , digest]) => digest !== undefined) ? 0 : 1
}

const renew = async () => {
  const renewed = []
  for (const { file, images, text } of files) {
    let next = text
    for (const [whole, name, tag, before] of images) {
      const digest = await digestOf(name, tag).catch((error) => {
        throw new Error(`${name}:${tag}: ${error.message}; nothing was changed`)
      })
      const state = before === undefined ? "not pinned" : before === digest ? "current" : "outdated"
      console.log(`${name}:${tag}@${digest}  (${state})`)
      next = next.replaceAll(whole, `${name}:${tag}@${digest}`)
    }
    renewed.push([file, next])
  }
  if (values.write) for (const [file, text] of renewed) writeFileSync(file, text)
}

if (values.list) process.exitCode = list()
else
  await renew().catch((error) => {
    console.error(`pinImages: ${error.message}`)
    process.exitCode = 1
  })
