# One build, six images: `docker build --target ingest|worker|lookup|webhooks|console|ops .`
FROM node:24.21.0-slim AS build
WORKDIR /app
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
RUN npm install --global "$(node -p 'require("./package.json").packageManager')"
# Only a change of the lockfile downloads packages again.
RUN pnpm fetch
COPY . .
# With optional packages: the compiler and turbo are among them.
RUN pnpm install --frozen-lockfile --offline
RUN pnpm exec turbo run build
# Without them: Node is the image's own. What only debuggers and compilers read stays out. Packages of others go to a
# folder of their own, and so into a layer of their own, which a release rarely changes.
RUN for app in ingest worker lookup webhooks console ops; do \
    pnpm --filter "@booking-events/$app" deploy --prod --no-optional --offline "/out/$app" || exit 1; \
    find "/out/$app" -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete; \
    mkdir -p "/packages/$app/node_modules/.pnpm"; \
    find "/out/$app/node_modules/.pnpm" -mindepth 1 -maxdepth 1 ! -name '@booking-events*' \
      -exec mv -t "/packages/$app/node_modules/.pnpm" {} +; \
  done

FROM node:24.21.0-slim AS base
LABEL org.opencontainers.image.version="0.1.0" org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
WORKDIR /app
USER node
# Node is process 1 and handles SIGTERM itself, so that a stop is graceful.

FROM base AS ingest
COPY --from=build --chown=root:root /packages/ingest ./
COPY --from=build --chown=root:root /out/ingest ./
# What ingest serves to partners under /docs/clients.
COPY --from=build --chown=root:root /app/docs/clients /docs/clients
EXPOSE 8080 9101
HEALTHCHECK --interval=10s --timeout=10s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:9101/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]

FROM base AS worker
COPY --from=build --chown=root:root /packages/worker ./
COPY --from=build --chown=root:root /out/worker ./
EXPOSE 9102
HEALTHCHECK --interval=10s --timeout=10s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:9102/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]

FROM base AS lookup
COPY --from=build --chown=root:root /packages/lookup ./
COPY --from=build --chown=root:root /out/lookup ./
EXPOSE 8080 9103
HEALTHCHECK --interval=10s --timeout=10s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:9103/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]

FROM base AS webhooks
COPY --from=build --chown=root:root /packages/webhooks ./
COPY --from=build --chown=root:root /out/webhooks ./
EXPOSE 8083 9104
HEALTHCHECK --interval=10s --timeout=10s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:9104/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]

FROM base AS console
COPY --from=build --chown=root:root /packages/console ./
COPY --from=build --chown=root:root /out/console ./
EXPOSE 8082 9105
HEALTHCHECK --interval=10s --timeout=10s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:9105/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]

FROM base AS ops
COPY --from=build --chown=root:root /packages/ops ./
COPY --from=build --chown=root:root /out/ops ./
# Absolute, because it may run in a folder of the host.
ENTRYPOINT ["node", "/app/dist/main.js"]
