<?php

// In place of Composer's autoloader: the library of the checkout, its tests, and phpseclib from Debian.
require_once 'phpseclib3/autoload.php';

spl_autoload_register(static function (string $class): void {
    foreach (['PhpAmqpLib\\Tests\\' => '/../tests/', 'PhpAmqpLib\\' => '/../PhpAmqpLib/'] as $prefix => $folder) {
        if (strncmp($class, $prefix, strlen($prefix)) === 0) {
            $file = __DIR__ . $folder . str_replace('\\', '/', substr($class, strlen($prefix))) . '.php';
            if (is_file($file)) {
                require $file;
                return;
            }
        }
    }
});
